"""One request on its way through an adapter: what the handlers of every route are given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from adapters.seal import Seal
from engine.config import Config
from engine.service import Service

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed the connection; nobody waits for a reply."""


@dataclass(frozen=True, slots=True)
class Call:
    """`body` is the validated request of the route's generated model, None without one."""

    request: Request
    service: Service
    config: Config
    seal: Seal
    tenant: str
    body: BaseModel | None

    async def unless_gone(self, work: Awaitable[T]) -> T:
        """Wait for a result, but not longer than the client does. Raises ClientGone."""
        task = asyncio.ensure_future(work)
        gone = asyncio.create_task(self._disconnect())
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientGone
            return task.result()
        finally:
            gone.cancel()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _disconnect(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
