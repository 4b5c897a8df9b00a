"""`python -m adapters`: from the configuration to a listening server, and back down."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from adapters.auth import Keys
from adapters.http import HttpProtocol
from adapters.script import load_script
from adapters.seal import Seal
from adapters.state import state_folder
from engine import config as configuration
from engine.client import ProcessClient
from engine.config import Config
from engine.core.runner import EngineSettings
from engine.errors import StartupError
from engine.messages import TokenizerFacts
from engine.model.checkpoint import locate, model_name
from engine.model.defaults import sampling_defaults
from engine.model.shape import Shape
from engine.outputs import OutputPlanner
from engine.prepare import Preparer
from engine.service import Limits, Service
from engine.text.effort import Defaults
from engine.text.template import ChatTemplate
from engine.text.tokenizer import Tokenizer
from engine.types import EngineFacts, ModelInfo

if TYPE_CHECKING:
    from adapters.store import ResponseStore

log = logging.getLogger("heliograph")


def main() -> int:
    """Serve until told to stop; 1 with one line when the server cannot start."""
    try:
        config = configuration.from_process()
        logging.basicConfig(level=config.log_level.upper(), format="%(message)s", stream=sys.stderr)
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells of its own stages
        for line in config.lines():
            log.info("config: %s", line)
        listener = _listen(config)
        keys = Keys.load(config.api_key_file)
        client, service, store = load(config)
    except StartupError as error:
        print(f"heliograph: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    seal = Seal.load(config.state_dir)  # now, because a start that fails leaves no key behind
    url = f"http://{_shown(config.host)}:{listener.getsockname()[1]}"
    from adapters.app import build_app

    app = build_app(service, config, keys, seal, store, on_start=client.attach)
    _Server(app, config, service, lambda: _announce(url, service.info)).run([listener])
    return 0


def load(config: Config) -> tuple[ProcessClient, Service, ResponseStore | None]:
    """Start the engine process; open the store and load what is about text meanwhile.

    Raises StartupError.
    """
    path = locate(config.model, log.info)
    drafts = None if config.draft_model is None else locate(config.draft_model, log.info)
    log.info("loading %s", path)
    script = None
    if config.scripted is not None:
        tokenizer = Tokenizer.load(path)
        script = load_script(config.scripted, tokenizer)
    settings = EngineSettings(
        path=path,
        dtype=config.dtype,
        quantization=config.quantization,
        max_context=config.max_context,
        max_concurrency=config.max_concurrency,
        prefill_chunk=config.prefill_chunk,
        max_batch_tokens=config.max_batch_tokens,
        kv_tokens=config.kv_tokens,
        threads=config.threads,
        deterministic=config.deterministic,
        log_level=config.log_level,
        script=script,
        speculation=config.speculation,
        draft_tokens=config.draft_tokens,
        draft_rows=config.draft_rows,
        draft_model=drafts,
    )
    client = ProcessClient(settings)
    try:
        importlib.import_module("adapters.app")  # takes a second, in which the engine loads
        store = _open_store(config)
        if config.scripted is None:
            Shape.load(path)  # an unknown architecture is told before what else is wrong
            tokenizer = Tokenizer.load(path)
        if drafts is not None:
            _check_vocabulary(drafts, tokenizer)
        template = ChatTemplate.load(path, tokenizer, config.dialect, _thinking(config))
        planner = OutputPlanner(
            template,
            tokenizer,
            constrain=config.constrain_tools,
            budget=config.thinking_token_budget,
            repetition=config.repetition_detection,
        )
        read = TokenizerFacts(tokenizer.vocabulary_json, tokenizer.eos_ids)
        facts = client.wait_ready(read, log.info)
    except BaseException:
        client.kill()
        raise
    info = _info(config, path, tokenizer, template, facts)
    preparer = Preparer(
        info, tokenizer, template, planner, clamp_max_tokens=config.clamp_max_tokens
    )
    limits = Limits(config.max_concurrency, config.max_queue, config.frontend_threads)
    return client, Service(preparer, client, limits), store


def _check_vocabulary(path: Path, tokenizer: Tokenizer) -> None:
    """Raises StartupError unless a draft model has the tokens of the served one."""
    drafts = Tokenizer.load(path)
    if (drafts.all_bytes, drafts.control_tokens) != (tokenizer.all_bytes, tokenizer.control_tokens):
        raise StartupError(f"the draft model {path} has another vocabulary than the model")


def _open_store(config: Config) -> ResponseStore | None:
    if config.store == "off":
        return None
    from adapters.store import StoreLimits, open_store

    limits = StoreLimits(
        max_responses=config.store_max_responses,
        max_bytes=config.store_max_bytes,
        max_age=config.store_max_days * 86_400.0,
    )
    return open_store(config.store, state_folder(config.state_dir), limits)


def _info(
    config: Config, path: Path, tokenizer: Tokenizer, template: ChatTemplate, facts: EngineFacts
) -> ModelInfo:
    checkpoint = model_name(path)
    return ModelInfo(
        id=config.alias[0] if config.alias else checkpoint,
        checkpoint=checkpoint,
        names=frozenset((checkpoint, *config.alias)),
        created=int(time.time()),
        eos_ids=tokenizer.eos_ids,
        bos_id=tokenizer.bos_id,
        defaults=sampling_defaults(path),
        default_max_tokens=config.default_max_tokens,
        engine=facts,
        sampling_ranges=config.sampling_ranges,
        repetition=config.repetition_detection,
        dialect=template.dialect.name,
        efforts=template.controls.efforts,
        thinking_budget=config.thinking_token_budget,
    )


def _thinking(config: Config) -> Defaults:
    switch = {"auto": None, "on": True, "off": False}[config.thinking]
    return Defaults(switch, config.reasoning_effort)


def _listen(config: Config) -> socket.socket:
    """Take the port before the model loads, so that a port in use is known at once."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
        listener.listen(2048)
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"cannot listen on {config.host}:{config.port}: {reason}; choose another --port"
        raise StartupError(message) from None
    return listener


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _announce(url: str, info: ModelInfo) -> None:
    engine: EngineFacts = info.engine
    log.info(
        "ready: %s at %s (%s, %s, context %s tokens)",
        info.id, url, engine.backend, engine.dtype, f"{engine.max_context:,}",
    )  # fmt: skip
    log.info("  documentation  %s/docs", url)
    log.info('  OpenAI SDK     OpenAI(base_url="%s/v1", api_key="none")', url)
    log.info("  environment    export OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=none", url)


class _Server(uvicorn.Server):
    """uvicorn, with our drain: refuse new requests, let running ones end, then stop."""

    def __init__(self, app: object, config: Config, service: Service, ready: object) -> None:
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]
                loop="uvloop",
                http=HttpProtocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=config.log_level == "debug",
                server_header=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=5,
            )
        )
        self._service = service
        self._drain_seconds = config.drain_seconds
        self._ready = ready
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop)
            self._ready()  # type: ignore[operator]

    def _stop(self) -> None:
        """The first signal drains, the second stops at once."""
        if self._draining is not None:
            self.should_exit = self.force_exit = True
            return
        log.info("stopping; running requests have %g s to end", self._drain_seconds)
        self._service.draining = True
        self._draining = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._service.idle.wait(), self._drain_seconds)
        self._service.client.abort("the server is stopping")
        self.should_exit = True
