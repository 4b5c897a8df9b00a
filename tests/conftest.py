"""Runs coroutine tests on an event loop of their own, and ends those that hang."""

from __future__ import annotations

import asyncio
import inspect

import hypothesis
import pytest

PATIENCE = 60.0  # seconds; the machine may be shared
hypothesis.settings.register_profile("untimed", deadline=None)  # nor is an example a benchmark
hypothesis.settings.load_profile("untimed")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    wanted = inspect.signature(function).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}

    async def run() -> None:
        async with asyncio.timeout(PATIENCE):
            await function(**arguments)

    asyncio.run(run())
    return True
