"""The vocabulary of a Hugging Face folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken

from engine.errors import StartupError
from engine.text.vocabulary import Vocabulary, read_json


def load_folder(path: Path) -> Vocabulary:
    """Read tokenizer.json and, where they exist, the configurations around it.

    Raises StartupError when tokenizer.json is missing or is not one.
    """
    core = _read_core(path / "tokenizer.json")
    config = read_json(path / "tokenizer_config.json")
    named = _named_tokens(read_json(path / "special_tokens_map.json") | config)
    _add_declared(core, config, named)
    model = read_json(path / "config.json")
    bos_id = _id(core, named.get("bos_token"))
    if not config and isinstance(model.get("bos_token_id"), int):
        bos_id = model["bos_token_id"]
    prefix, suffix = _post_processing(core)
    explicit = config.get("add_bos_token")
    if explicit is False:
        prefix = tuple(token for token in prefix if token != bos_id)
    elif explicit and bos_id is not None and bos_id not in prefix:
        prefix = (bos_id, *prefix)
    return Vocabulary(
        core=core,
        prefix_ids=prefix,
        suffix_ids=suffix,
        bos_id=bos_id,
        eos_ids=_eos_ids(core, named, model, read_json(path / "generation_config.json")),
        special_tokens=named,
    )


def _read_core(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise StartupError(f"{path.parent} has no tokenizer.json")
    try:
        core = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise StartupError(f"cannot read {path}: {error}") from None
    core.no_truncation()
    core.no_padding()
    return core


def _named_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token` and its like; each is a string or a serialised AddedToken."""
    named = {}
    for key, value in config.items():
        content = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(content, str):
            named[key] = content
    return named


def _add_declared(
    core: tokenizers.Tokenizer, config: Mapping[str, Any], named: Mapping[str, str]
) -> None:
    """Add tokens that only tokenizer_config.json declares, in the order of their ids."""
    known = {token.content for token in core.get_added_tokens_decoder().values()}
    declared = config.get("added_tokens_decoder") or {}
    for _, entry in sorted(declared.items(), key=lambda item: int(item[0])):
        if entry["content"] not in known:
            flags = {name: bool(entry.get(name)) for name in ("lstrip", "rstrip", "normalized")}
            token = AddedToken(entry["content"], special=bool(entry.get("special")), **flags)
            core.add_tokens([token])
            known.add(entry["content"])
    missing = [content for content in dict.fromkeys(named.values()) if content not in known]
    core.add_special_tokens([AddedToken(content, normalized=False) for content in missing])


def _post_processing(core: tokenizers.Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the post-processor puts before and behind a text."""
    bare = core.encode("a", add_special_tokens=False).ids
    full = core.encode("a", add_special_tokens=True).ids
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return tuple(full[:start]), tuple(full[start + len(bare) :])
    return (), ()


def _eos_ids(
    core: tokenizers.Tokenizer, named: Mapping[str, str], *configs: Mapping[str, Any]
) -> tuple[int, ...]:
    def declared() -> Iterator[Any]:
        for config in configs:
            value = config.get("eos_token_id")
            yield from value if isinstance(value, list) else [value]
        yield _id(core, named.get("eos_token"))

    return tuple(dict.fromkeys(token for token in declared() if isinstance(token, int)))


def _id(core: tokenizers.Tokenizer, content: str | None) -> int | None:
    return None if content is None else core.token_to_id(content)
