"""`python -m conformance.bench [--url URL] [--json] [-- SERVER OPTIONS]`: one table of speeds."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import ExitStack

import httpx2

from conformance.bench.measure import aggregate, prompt_of, table, timed, together
from conformance.server import Server

TOKENS = 64
SHORT = 16
ROUNDS = 3


def main() -> int:
    """Measure a running server, or one that is started with the options after `--`."""
    parser = argparse.ArgumentParser(prog="conformance.bench", description=__doc__)
    parser.add_argument("--url", help="a running server; without it, one is started")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("options", nargs="*", help="options of the server that is started")
    given = parser.parse_args()
    with ExitStack() as stack:
        begun = time.monotonic()
        url = given.url or stack.enter_context(Server(*given.options)).url
        started = time.monotonic() - begun
        client = stack.enter_context(httpx2.Client(base_url=url, timeout=600, trust_env=False))
        figures = measure(client)
    if not given.url:
        figures = {"start_seconds": round(started, 2), **figures}
    if given.json:
        print(json.dumps(figures))
    else:
        print(table([(name.replace("_", " "), str(value)) for name, value in figures.items()]))
    return 0


def measure(client: httpx2.Client) -> dict[str, float]:
    """All figures; every prompt is new to the cache but where the name says warm."""
    seeds = iter(range(int(time.time()), sys.maxsize, 1))

    def prompts(count: int, length: int) -> list[list[int]]:
        return [prompt_of(length, next(seeds)) for _ in range(count)]

    timed(client, prompts(1, SHORT)[0], 8)  # warm up
    single = [timed(client, prompt, TOKENS).rate for prompt in prompts(ROUNDS, SHORT)]
    figures = {"single_stream_tok_s": statistics.median(single)}
    for count in (8, 16):
        totals = [aggregate(together(client, prompts(count, SHORT), TOKENS)) for _ in range(ROUNDS)]
        figures[f"streams_{count}_total_tok_s"] = statistics.median(totals)
    cold, warm = [], []
    for prompt in prompts(ROUNDS, 512):
        cold.append(timed(client, prompt, 2).ttft)
        warm.append(timed(client, prompt, 2).ttft)
    figures["ttft_512_cold_ms"] = 1000 * statistics.median(cold)
    figures["ttft_512_warm_ms"] = 1000 * statistics.median(warm)
    return {name: round(value, 1) for name, value in figures.items()}


if __name__ == "__main__":
    sys.exit(main())
