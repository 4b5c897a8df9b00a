from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, processors

from engine.errors import StartupError
from engine.text.hf_vocab import load_folder
from engine.text.tokenizer import Tokenizer
from tests.engine.text.vocabularies import MARKUP, byte_level_core, write_folder


def test_end_tokens_are_those_of_all_files(tmp_path: Path) -> None:
    core = byte_level_core(MARKUP)
    folder = write_folder(
        tmp_path / "m",
        core,
        config={"eos_token_id": 5},
        generation_config={"eos_token_id": [6, 5]},
        tokenizer_config={"eos_token": "<|im_end|>"},
    )
    assert load_folder(folder).eos_ids == (5, 6, core.token_to_id("<|im_end|>"))


def test_names_for_templates(tmp_path: Path) -> None:
    folder = write_folder(
        tmp_path / "m",
        byte_level_core(MARKUP),
        special_tokens_map={"bos_token": "<other>", "pad_token": "<s>"},
        tokenizer_config={
            "bos_token": {"content": "<s>", "lstrip": False},
            "eos_token": "<|im_end|>",
            "unk_token": None,
            "add_bos_token": True,
            "image_token": "[INST]",
        },
    )
    assert load_folder(folder).special_tokens == {
        "bos_token": "<s>",
        "pad_token": "<s>",
        "eos_token": "<|im_end|>",
        "image_token": "[INST]",
    }


@pytest.mark.parametrize(
    ("post", "config", "prefix"),
    [
        (False, {}, ""),
        (False, {"add_bos_token": True}, "<s>"),
        (True, {}, "<s>"),
        (True, {"add_bos_token": True}, "<s>"),
        (True, {"add_bos_token": False}, ""),
    ],
)
def test_when_a_text_starts_with_bos(
    post: bool, config: dict[str, Any], prefix: str, tmp_path: Path
) -> None:
    core = byte_level_core(MARKUP)
    if post:
        bos = core.token_to_id("<s>")
        core.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", bos)])
    folder = write_folder(tmp_path / "m", core, tokenizer_config={"bos_token": "<s>"} | config)
    tokenizer = Tokenizer.load(folder)
    ids = tokenizer.encode("hi", add_special_tokens=True)
    assert tokenizer.decode(ids) == prefix + "hi"
    assert tokenizer.add_bos is bool(prefix)


def test_tokens_that_only_the_configuration_declares(tmp_path: Path) -> None:
    declared = {
        "257": {"content": "<|b|>", "special": True},
        "256": {"content": "<a>", "special": False, "rstrip": True},
    }
    config = {"added_tokens_decoder": declared, "eos_token": "<|c|>"}
    tokenizer = Tokenizer.load(
        write_folder(tmp_path / "m", byte_level_core(), tokenizer_config=config)
    )
    assert tokenizer.control_tokens == {"<a>": 256, "<|b|>": 257, "<|c|>": 258}
    assert tokenizer.special_ids == {257, 258}
    assert tokenizer.eos_ids == (258,)
    assert tokenizer.vocab_size == 259


def test_truncation_in_the_file_is_ignored(tmp_path: Path) -> None:
    core = byte_level_core((AddedToken("<s>", special=True),))
    core.enable_truncation(3)
    core.enable_padding(length=8)
    tokenizer = Tokenizer.load(write_folder(tmp_path / "m", core))
    assert len(tokenizer.encode("hello", add_special_tokens=True)) == 5


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("tokenizer.json", None, "no tokenizer.json"),
        ("tokenizer.json", "{", "cannot read"),
        ("tokenizer_config.json", "[]", "JSON object"),
        ("config.json", "{", "cannot read"),
    ],
)
def test_unusable_folders(name: str, content: str | None, reason: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", byte_level_core())
    (folder / name).unlink(missing_ok=True)
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(StartupError, match=reason):
        load_folder(folder)
