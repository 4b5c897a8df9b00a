"""The program around the engine process: text, store and service become an application."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from adapters.app import build_app
from adapters.auth import Keys
from adapters.seal import Seal
from adapters.state import state_folder
from engine.client import ProcessClient
from engine.config import Config
from engine.errors import StartupError
from engine.messages import TokenizerFacts
from engine.model.checkpoint import model_name
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


def assemble(
    config: Config, path: Path, drafts: Path | None, client: ProcessClient
) -> tuple[ASGIApp, Service]:
    """Open what the server needs while the engine loads the model, and wait for the engine.

    `drafts`: the draft model's files. Raises StartupError.
    """
    keys = Keys.load(config.api_key_file)
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
    info = _info(config, path, tokenizer, template, client.wait_ready(read, log.info))
    preparer = Preparer(
        info, tokenizer, template, planner, clamp_max_tokens=config.clamp_max_tokens
    )
    limits = Limits(config.max_concurrency, config.max_queue, config.frontend_threads)
    service = Service(preparer, client, limits)
    seal = Seal.load(config.state_dir)  # last: a start that fails leaves no key behind
    return build_app(service, config, keys, seal, store, on_start=client.attach), service


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
