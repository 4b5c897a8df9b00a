"""`python -m conformance.bench [OPTIONS] [-- SERVER OPTIONS]`; docs/performance.md says how."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2

from conformance.bench import document, machine
from conformance.bench.contest import Ours, contest
from conformance.bench.options import OURS, Options, parse
from conformance.bench.plot import plot
from conformance.bench.process import ProcessTree, tree_at
from conformance.bench.report import Report, faulty
from conformance.bench.rows import Target, metrics_of
from conformance.server import Server

_WITHOUT_DRAFTS = ("--speculation", "off")
_START_SECONDS = 600


def main() -> int:
    """Measure, and show what was found. 1 where our own server did not do what was asked."""
    options = parse()
    say("describing the machine")
    described = machine.describe()
    seed = int(time.time())  # new prompts in each run, for servers that go on running
    with ExitStack() as stack:
        ours, starts = _ours(stack, options)
        rivals = [
            Target(r.name, r.url, r.model, _client(stack, r.url), tree_at(r.url), r.weights_bytes)
            for r in options.rivals
        ]
        entries = contest(options.rows, ours, rivals, options.sizes, options.rounds, seed, say)
    # Other work may have held the memory before: the better figure is nearer to the machine's.
    bandwidth = max(described.bandwidth, machine.read_bandwidth())
    report = Report(
        machine=replace(described, bandwidth=bandwidth),
        model=ours.given.model,
        options=options.server,
        rounds=options.rounds,
        sizes=options.sizes,
        seed=seed,
        starts=starts,
        entries=tuple(entries),
    )
    _show(report, options)
    return int(faulty(entries, OURS))


def say(what: str) -> None:
    """Progress, apart from the results."""
    print(what, file=sys.stderr, flush=True)


def _ours(stack: ExitStack, options: Options) -> tuple[Ours, tuple[float, ...]]:
    """Our servers and the seconds that each took to be ready; none for one that ran already."""
    if options.url:
        tree = tree_at(options.url)
        running = _target(stack, options.url, tree, options.weights_bytes)
        return Ours(running, running), ()
    targets, starts = [], []
    kinds = [options.server]
    if not all(row.drafts for row in options.rows):
        kinds.append((*options.server, *_WITHOUT_DRAFTS))
    for given in kinds:
        say(f"starting a server: {' '.join(given)}")
        server, seconds = stack.enter_context(_started(given))
        tree = ProcessTree(server.pid)
        targets.append(_target(stack, server.url, tree, options.weights_bytes))
        starts.append(seconds)
    return Ours(targets[0], targets[-1]), tuple(starts)


@contextmanager
def _started(options: tuple[str, ...]) -> Iterator[tuple[Server, float]]:
    """A server, and the seconds from its spawn until /health says that it is ready."""
    begun = time.monotonic()
    with Server(*options, start_seconds=_START_SECONDS) as server:
        while server.http.get("/health").status_code != 200:
            time.sleep(0.01)
        yield server, time.monotonic() - begun


def _target(
    stack: ExitStack, url: str, tree: ProcessTree | None, weights_bytes: int | None
) -> Target:
    client = _client(stack, url)
    model = client.get("/v1/models").raise_for_status().json()["data"][0]["id"]
    weights_bytes = weights_bytes or metrics_of(client).get("decode_weight_bytes")
    return Target(OURS, url, model, client, tree, weights_bytes, ours=True)


def _client(stack: ExitStack, url: str) -> httpx2.Client:
    # Proxies of the environment are not for servers under measurement.
    return stack.enter_context(httpx2.Client(base_url=url, timeout=600, trust_env=False))


def _show(report: Report, options: Options) -> None:
    if options.json == "-":
        print(json.dumps(report.as_json()))
    else:
        print(report.text())
        if options.json:
            Path(options.json).write_text(json.dumps(report.as_json()), encoding="utf-8")
    if options.plot:
        plot(report.entries, options.plot)
    if options.write:
        document.write(options.write, report.markdown())


if __name__ == "__main__":
    # Ending by SIGTERM leaves the contexts as well, and with them no server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
