"""`python -m adapters`: from the configuration to a listening server.

What is imported here is little, so that the engine process begins to load at once: the other half
of the program, `assemble.py` and `server.py`, takes a second to import, in which it does.
"""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path

from engine import config as configuration
from engine.client import ProcessClient
from engine.config import Config
from engine.core.runner import EngineSettings
from engine.errors import StartupError
from engine.model.checkpoint import locate

log = logging.getLogger("heliograph")


def main() -> int:
    """Serve until told to stop; 1 with one line when the server cannot start."""
    try:
        config = configuration.from_process()
        logging.basicConfig(level=config.log_level.upper(), format="%(message)s", stream=sys.stderr)
        for line in config.lines():
            log.info("config: %s", line)
        _serve(config, _listen(config))
    except StartupError as error:
        print(f"heliograph: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(config: Config, listener: socket.socket) -> None:
    """Raises StartupError."""
    path = locate(config.model, log.info)
    drafts = None if config.draft_model is None else locate(config.draft_model, log.info)
    log.info("loading %s", path)
    client = ProcessClient(_engine_settings(config, path, drafts))
    try:
        from adapters.assemble import assemble
        from adapters.server import Server

        app, service = assemble(config, path, drafts, client)
    except BaseException:
        client.kill()
        raise
    url = f"http://{_shown(config.host)}:{listener.getsockname()[1]}"
    Server(app, config, service, url).run([listener])


def _engine_settings(config: Config, path: Path, drafts: Path | None) -> EngineSettings:
    script = None
    if config.scripted is not None:
        from adapters.script import load_script
        from engine.text.tokenizer import Tokenizer

        script = load_script(config.scripted, Tokenizer.load(path))
    return EngineSettings(
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
