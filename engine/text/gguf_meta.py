"""The header of a GGUF file: key-values and where each tensor lies. Loads neither torch nor data.

The format is described in ggml's `docs/gguf.md`. Only little-endian files of version 2 and 3 exist
in practice. Every length is checked against the file before it is used, so that a truncated or
hostile file ends as one `StartupError`.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

from engine.errors import StartupError

# ggml type id -> (weights in a block, bytes of a block), from ggml's type traits
BLOCK_SIZES: dict[int, tuple[int, int]] = {
    0: (1, 4),  # F32
    1: (1, 2),  # F16
    2: (32, 18),  # Q4_0
    3: (32, 20),  # Q4_1
    6: (32, 22),  # Q5_0
    7: (32, 24),  # Q5_1
    8: (32, 34),  # Q8_0
    9: (32, 40),  # Q8_1
    10: (256, 84),  # Q2_K
    11: (256, 110),  # Q3_K
    12: (256, 144),  # Q4_K
    13: (256, 176),  # Q5_K
    14: (256, 210),  # Q6_K
    15: (256, 292),  # Q8_K
    16: (256, 66),  # IQ2_XXS
    17: (256, 74),  # IQ2_XS
    18: (256, 98),  # IQ3_XXS
    19: (256, 50),  # IQ1_S
    20: (32, 18),  # IQ4_NL
    21: (256, 110),  # IQ3_S
    22: (256, 82),  # IQ2_S
    23: (256, 136),  # IQ4_XS
    24: (1, 1),  # I8
    25: (1, 2),  # I16
    26: (1, 4),  # I32
    27: (1, 8),  # I64
    28: (1, 8),  # F64
    29: (256, 56),  # IQ1_M
    30: (1, 2),  # BF16
    34: (256, 54),  # TQ1_0
    35: (256, 66),  # TQ2_0
    39: (32, 17),  # MXFP4
}

_SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}  # struct codes
_STRING, _ARRAY = 8, 9
_MAX_NESTING = 4
_MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor. `shape` is in row-major order (outermost first), the reverse of ggml's `ne`.

    `ggml_type` is ggml's type id, `offset` counts bytes from the start of the file.
    """

    name: str
    shape: tuple[int, ...]
    ggml_type: int
    offset: int
    nbytes: int


def read_metadata(path: Path) -> dict[str, object]:
    """Key-values of the file: bool, int, float, str, or a list of these."""
    with _open(path) as header:
        return header.metadata()


def read_header(path: Path) -> tuple[dict[str, object], list[TensorInfo]]:
    """The metadata, and every tensor of the file in file order; each lies wholly inside it."""
    with _open(path) as header:
        metadata = header.metadata()
        return metadata, header.tensors(metadata)


class _Header:
    """A cursor over the mapped file."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._size = len(data)
        self._at = 0
        if self._take(4) != b"GGUF":
            raise self._corrupt("it does not start with the GGUF magic")
        version = self._scalar("I")
        if version not in (2, 3):
            raise self._corrupt(f"version {version} is not supported (2 and 3 are)")
        self._tensor_count = self._count(24)
        self._value_count = self._count(13)

    def __enter__(self) -> _Header:
        return self

    def __exit__(self, *_: object) -> None:
        self._data.close()

    def metadata(self) -> dict[str, object]:
        values: dict[str, object] = {}
        for _ in range(self._value_count):
            key = self._string()
            values[key] = self._value(self._scalar("I"), depth=0)
        return values

    def tensors(self, metadata: dict[str, object]) -> list[TensorInfo]:
        """Read the tensor table, which follows the key-values."""
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise self._corrupt(f"general.alignment is {alignment!r}")
        table = [self._tensor() for _ in range(self._tensor_count)]
        start = -(-self._at // alignment) * alignment
        return [self._placed(start, *row) for row in table]

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string()
        dimensions = self._scalar("I")
        if dimensions > _MAX_DIMENSIONS:
            raise self._corrupt(f"tensor {name} has {dimensions} dimensions")
        shape = struct.unpack(f"<{dimensions}Q", self._take(8 * dimensions))[::-1]
        return name, shape, self._scalar("I"), self._scalar("Q")

    def _placed(
        self, start: int, name: str, shape: tuple[int, ...], kind: int, offset: int
    ) -> TensorInfo:
        if kind not in BLOCK_SIZES:
            raise self._corrupt(f"tensor {name} has the unknown ggml type {kind}")
        weights, block_bytes = BLOCK_SIZES[kind]
        if shape and shape[-1] % weights:
            raise self._corrupt(f"the rows of tensor {name} are not whole blocks of {weights}")
        nbytes = prod(shape) // weights * block_bytes
        if start + offset + nbytes > self._size:
            raise self._corrupt(f"tensor {name} ends behind the end of the file (cut short?)")
        return TensorInfo(name, shape, kind, start + offset, nbytes)

    def _value(self, kind: int, depth: int) -> object:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array(depth + 1)
        if kind not in _SCALARS:
            raise self._corrupt(f"unknown value type {kind}")
        return self._scalar(_SCALARS[kind])

    def _array(self, depth: int) -> list[object]:
        if depth > _MAX_NESTING:
            raise self._corrupt("arrays are nested too deeply")
        kind = self._scalar("I")
        if kind == _STRING:
            return list(self._strings(self._count(8)))
        if kind == _ARRAY:
            return [self._array(depth + 1) for _ in range(self._count(12))]
        if kind not in _SCALARS:
            raise self._corrupt(f"unknown value type {kind}")
        code = _SCALARS[kind]
        count = self._count(struct.calcsize(code))
        return list(struct.unpack(f"<{count}{code}", self._take(count * struct.calcsize(code))))

    def _strings(self, count: int) -> list[str]:
        """`_string` in one loop: vocabularies hold hundreds of thousands."""
        data, at, size = self._data, self._at, self._size
        read_length = struct.Struct("<Q").unpack_from
        strings = []
        for _ in range(count):
            if at + 8 > size:
                raise self._corrupt("it is cut short")
            end = at + 8 + read_length(data, at)[0]
            if end > size:
                raise self._corrupt("it is cut short")
            strings.append(data[at + 8 : end].decode("utf-8", "replace"))
            at = end
        self._at = at
        return strings

    def _string(self) -> str:
        return self._strings(1)[0]

    def _count(self, least_bytes: int) -> int:
        """A number of items that each take at least `least_bytes` of what is left of the file."""
        count: int = self._scalar("Q")
        if count * least_bytes > self._size - self._at:
            raise self._corrupt("it is cut short")
        return count

    def _scalar(self, code: str) -> int:
        value: int = struct.unpack("<" + code, self._take(struct.calcsize(code)))[0]
        return value

    def _take(self, count: int) -> bytes:
        if count > self._size - self._at:
            raise self._corrupt("it is cut short")
        self._at += count
        return self._data[self._at - count : self._at]

    def _corrupt(self, why: str) -> StartupError:
        return StartupError(f"{self._path} is not a usable GGUF file: {why}")


def _open(path: Path) -> _Header:
    try:
        with path.open("rb") as file:
            return _Header(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise StartupError(f"cannot read {path}: {error}") from None
