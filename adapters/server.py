"""uvicorn, from the listening socket to the drain that ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket

import uvicorn
from starlette.types import ASGIApp

from adapters.http import HttpProtocol
from engine.config import Config
from engine.service import Service
from engine.types import EngineFacts, ModelInfo

log = logging.getLogger("heliograph")


class Server(uvicorn.Server):
    """uvicorn, with our drain: refuse new requests, let running ones end, then stop."""

    def __init__(self, app: ASGIApp, config: Config, service: Service, url: str) -> None:
        """`url`: where it can be reached, which is told once it can."""
        logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells of its own stages
        super().__init__(
            uvicorn.Config(
                app,
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
        self._url = url
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._stop)
            _announce(self._url, self._service.info)

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


def _announce(url: str, info: ModelInfo) -> None:
    engine: EngineFacts = info.engine
    log.info(
        "ready: %s at %s (%s, %s, context %s tokens)",
        info.id, url, engine.backend, engine.dtype, f"{engine.max_context:,}",
    )  # fmt: skip
    log.info("  documentation  %s/docs", url)
    log.info('  OpenAI SDK     OpenAI(base_url="%s/v1", api_key="none")', url)
    log.info("  environment    export OPENAI_BASE_URL=%s/v1 OPENAI_API_KEY=none", url)
