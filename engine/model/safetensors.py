"""Reads the weights of a Hugging Face folder: one safetensors file, or shards with an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from safetensors import SafetensorError, safe_open

from engine.errors import StartupError
from engine.model.numbers import Numbers

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
DTYPES = ("F32", "F16", "BF16")


class TensorSlice(Protocol):
    """What is known of a tensor that is not read yet."""

    def get_dtype(self) -> str: ...
    def get_shape(self) -> list[int]: ...


class TensorFile(Protocol):
    """What is used of `safe_open`, which has no types of its own."""

    def keys(self) -> list[str]: ...
    def get_slice(self, name: str) -> TensorSlice: ...
    def get_tensor(self, name: str) -> Numbers: ...


class SafetensorsFolder:
    """The tensors of a folder, memory-mapped; nothing is read before `read`."""

    def __init__(self, path: Path) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._files: dict[str, TensorFile] = {}
        for file in _files(path):
            try:
                opened: TensorFile = safe_open(file, framework="np")
                names = opened.keys()
                for name in names:
                    self._add(file, name, opened)
            except (SafetensorError, OSError) as error:
                raise StartupError(f"{file}: cannot read it: {error}") from error

    def _add(self, file: Path, name: str, opened: TensorFile) -> None:
        view = opened.get_slice(name)
        if view.get_dtype() not in DTYPES:
            raise StartupError(
                f"{file}: the tensor {name} has type {view.get_dtype()}; "
                f"supported: {', '.join(DTYPES)}"
            )
        self.shapes[name] = tuple(view.get_shape())
        self._files[name] = opened

    def raw(self, name: str) -> None:
        """Return None: what a folder holds are floats."""

    def read(self, name: str) -> Numbers:
        """Return a tensor in the file's own type."""
        try:
            return self._files[name].get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise StartupError(f"the tensor {name} cannot be read: {error}") from error


def _files(path: Path) -> list[Path]:
    index = path / INDEX_FILE
    if not index.is_file():
        if not (path / SINGLE_FILE).is_file():
            raise StartupError(f"{path}: the folder has neither {SINGLE_FILE} nor {INDEX_FILE}")
        return [path / SINGLE_FILE]
    try:
        shards = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartupError(f"{index}: the index is broken: {error!r}") from error
    for shard in shards:
        if Path(shard).name != shard:
            raise StartupError(f"{index}: the shard name {shard!r} leaves the folder")
        if not (path / shard).is_file():
            raise StartupError(f"{path}: the shard {shard} is missing")
    return [path / shard for shard in shards]
