"""How the benchmark reads servers: other people's habits, and one whole small run."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from conformance.bench import __main__ as bench
from conformance.bench.process import ProcessTree, Watch, tree_at, wait_for_rest
from conformance.bench.stream import Stream, chunks, streamed
from conformance.server import Server

LLAMA = (
    b'data: {"choices":[{"text":"one","index":0,"finish_reason":null}]}\n\n'
    b": a comment\n\n"
    b'data: {"choices":[{"text":" two\xe2\x80\xa8","index":0,"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"text":"","index":0,"finish_reason":"length"}],'
    b'"usage":{"completion_tokens":3,"prompt_tokens":9},"timings":{"cache_n":5,'
    b'"draft_n_accepted":1}}\n\n'
    b"data: [DONE]\n\n"
)
VLLM = (
    b'data: {"choices":[{"delta":{"role":"assistant","content":""},"index":0}]}\r\n\r\n'
    b'data:{"choices":[{"delta":{"content":"one"},"index":0}],"usage":null}\r\n\r\n'
    b'data: {"choices":[{"delta":{"content":" two"},"index":0,"finish_reason":"length"}]}\r\n\r\n'
    b'data: {"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":9,'
    b'"prompt_tokens_details":{"cached_tokens":5},'
    b'"completion_tokens_details":{"accepted_prediction_tokens":1}}}\r\n\r\n'
    b"data: [DONE]\r\n\r\n"
)
SILENT = b'data: {"choices":[{"text":"one"}]}\n\ndata: [DONE]\n\n'


def read(content: bytes, status: int = 200, wanted: int = 3) -> Stream:
    """The stream that a server with this reply gives."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, content=content))
    with httpx2.Client(transport=transport, base_url="http://other") as client:
        return streamed(client, "/v1/completions", {}, wanted)


@pytest.mark.parametrize(("content", "text"), [(LLAMA, "one two\u2028"), (VLLM, "one two")])
def test_habits(content: bytes, text: str) -> None:
    """Of llama.cpp and of vLLM; the first piece of text counts, not the first chunk."""
    stream = read(content)
    assert (stream.text, stream.fault, len(stream.arrivals)) == (text, "", 2)
    assert (stream.tokens, stream.prompt_tokens, stream.cached, stream.accepted) == (3, 9, 5, 1)
    assert stream.begun <= stream.first == stream.arrivals[0] <= stream.ended


@pytest.mark.parametrize(
    ("content", "status", "wanted", "fault"),
    [
        (SILENT, 200, 1, "sends no usage"),
        (VLLM, 200, 4, "made 3 of 4 tokens"),
        (b"Not here", 404, 1, "status 404: Not here"),
        (b'data: {"error":{"message":"too long"}}\n\n', 200, 1, "error: too long"),
        (b'error: {"message":"too long"}\n\n', 200, 1, "error: too long"),
        (b"data: {nothing\n\n", 200, 1, "JSONDecodeError: "),
        (b"data: 3\n\n", 200, 1, "ValueError: not an object: b'3'"),
        (b'data: {"choices":[],"usage":{"completion_tokens":1}}', 200, 1, "made no text"),
    ],
)
def test_faults(content: bytes, status: int, wanted: int, fault: str) -> None:
    """Whatever is wrong is told, and nothing is raised."""
    assert read(content, status, wanted).fault.startswith(fault)


def test_an_unreachable_server_is_a_fault() -> None:
    with httpx2.Client(base_url="http://127.0.0.1:9", trust_env=False) as client:
        assert streamed(client, "/v1/completions", {}, 1).fault.startswith("ConnectError: ")


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_chunks_however_they_are_cut(size: int) -> None:
    parts = [VLLM[place : place + size] for place in range(0, len(VLLM), size)]
    assert list(chunks(parts)) == list(chunks([VLLM]))
    assert len(list(chunks([VLLM]))) == 4


def test_what_processes_use(start: Callable[..., Server]) -> None:
    """Found by the port, with the engine's process; nothing is known of a remote server."""
    server = start([])
    tree = tree_at(server.url)
    assert tree is not None
    with Watch(tree) as watch:
        assert server.http.get("/health").status_code == 200
    assert watch.wall_seconds > 0 and watch.cpu_seconds is not None and watch.cpu_seconds >= 0
    assert watch.peak_bytes is not None and watch.peak_bytes > server.resident()["engine"]
    assert tree_at("http://example.org:80") is None
    with Watch(None) as nothing:
        assert nothing.peak_bytes is None


def test_a_whole_run(
    start: Callable[..., Server],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ours against itself by another name, scripted: rows, ratios, JSON and the document."""
    replies = [{"match": "", "text": "word " * 200}]
    ours, other = start(replies), start(replies)
    path = tmp_path / "table.md"
    path.write_text("<!-- table --><!-- /table -->")
    arguments = ["--url", ours.url, "--against", other.url, "--against-model", "any"]
    arguments += ["--against-name", "other", "--rows", "decode,streams-8,prefill-512,warm-512"]
    arguments += ["--quick", "--json", "-", "--write", str(path)]
    monkeypatch.setattr("sys.argv", ["bench", *arguments])
    assert bench.main() == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    rows = {(row["row"], row["server"]): row for row in found["rows"]}
    assert len(rows) == 8
    assert not [row for row in rows.values() if row["figures"]["faults"]]
    assert rows["streams-8", "other"]["samples"][0]["tokens"] == 8 * 16
    assert rows["decode", "other"]["ratio"]["rounds"] == 1
    assert rows["prefill-512", "Heliograph"]["figures"]["rate"] > 0
    assert rows["warm-512", "Heliograph"]["figures"]["rate"] is None
    assert found["starts"] == []
    assert "| decode, short prompt | other |" in path.read_text()


SPINNER = """
import sys, time
end = time.process_time() + float(sys.argv[1])
while time.process_time() < end: pass
print(flush=True)
time.sleep(60)
"""


def test_a_server_that_spins_is_waited_for() -> None:
    """But not for ever."""
    for seconds, waits in ((1.0, True), (60.0, False)):
        command = [sys.executable, "-c", SPINNER, str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as spinner:
            assert spinner.stdout is not None
            wait_for_rest([ProcessTree(spinner.pid)], 30.0 if waits else 0.5)
            said, _, _ = select.select([spinner.stdout], [], [], 0)
            assert bool(said) == waits
            spinner.kill()
