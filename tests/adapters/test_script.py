"""The file of `--scripted`: every key, and one line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.script import load_script
from engine.backend.scripted import Reply
from engine.errors import StartupError
from tests.serving import ids, tokenizer


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.json"
    path.write_text(text)
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    entries = [
        {"text": "a<|im_end|>b", "match": "^x"},
        {"token_ids": [5, 6], "delay_ms": 20, "prefill_delay_ms": 5},
        {"text": "", "fail_after": 2, "crash_after": 3},
    ]
    script = load_script(write(tmp_path, json.dumps({"replies": entries})), tokenizer())
    assert script.replies == (
        Reply(ids("a<|im_end|>b"), match="^x"),
        Reply((5, 6), delay=0.02, prefill_delay=0.005),
        Reply((), fail_after=2, crash_after=3),
    )
    assert tokenizer().eos_ids[0] in script.replies[0].token_ids
    assert (script.vocab_size, script.end_id) == (tokenizer().vocab_size, tokenizer().eos_ids[0])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"replies": 5}',
        '{"replies": [5]}',
        '{"replies": ["text"]}',
        '{"replies": [{}]}',
        '{"replies": [{"text": "a", "token_ids": [1]}]}',
        '{"replies": [{"text": 5}]}',
        '{"replies": [{"text": "a", "delay": 5}]}',
        '{"replies": [{"text": "a", "match": "("}]}',
        '{"replies": [{"text": "a", "match": 5}]}',
        '{"replies": [{"text": "a", "delay_ms": "slow"}]}',
        '{"replies": [{"text": "a", "fail_after": "soon"}]}',
        '{"replies": [{"token_ids": [-1]}]}',
        '{"replies": [{"token_ids": [999999]}]}',
        '{"replies": [{"token_ids": 5}]}',
    ],
)
def test_a_wrong_script_is_named_in_one_line(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(StartupError, match=str(path)) as caught:
        load_script(path, tokenizer())
    assert "\n" not in str(caught.value)


def test_a_missing_script_is_named(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"nothing\.json"):
        load_script(tmp_path / "nothing.json", tokenizer())
