"""A draft model must have the tokens of the model that it drafts for."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapters import assemble
from engine.errors import StartupError
from engine.model.checkpoint import locate
from engine.text.tokenizer import Tokenizer
from tests.serving import tokenizer


def test_the_same_tokens_pass_and_others_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    same = Tokenizer.load(locate(None, lambda _: None))
    monkeypatch.setattr(Tokenizer, "load", lambda path: same)
    assemble._check_vocabulary(Path("small"), same)
    with pytest.raises(StartupError, match="small has another vocabulary"):
        assemble._check_vocabulary(Path("small"), tokenizer())
