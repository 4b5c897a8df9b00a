"""Where a checkpoint keeps its chat template."""

from __future__ import annotations

from pathlib import Path

from engine.errors import StartupError
from engine.text.gguf_meta import read_metadata
from engine.text.vocabulary import read_json


def template_source(path: Path) -> str | None:
    """The template of a Hugging Face folder or a GGUF file, if it has one. Raises StartupError."""
    if path.is_dir():
        return _of_folder(path)
    source = read_metadata(path).get("tokenizer.chat_template")
    return source if isinstance(source, str) else None


def _of_folder(path: Path) -> str | None:
    file = path / "chat_template.jinja"
    if file.is_file():
        try:
            return file.read_text("utf-8")
        except (OSError, ValueError) as error:
            raise StartupError(f"cannot read {file}: {error}") from None
    declared = read_json(path / "tokenizer_config.json").get("chat_template")
    if isinstance(declared, list):
        entries = [entry for entry in declared if isinstance(entry, dict)]
        named = {entry.get("name"): entry.get("template") for entry in entries}
        declared = named.get("default") or next(iter(named.values()), None)
    return declared if isinstance(declared, str) else None
