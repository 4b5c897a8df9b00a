from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import StartupError
from engine.text.gguf_meta import TensorInfo, read_header, read_metadata
from tests.engine.text.vocabularies import write_gguf

METADATA: dict[str, object] = {
    "general.name": "Grüße",
    "flag": True,
    "count": 7,
    "ratio": 0.5,
    "words": ["a", "", "Ġb"],
    "scores": [1.0, -2.0],
    "kinds": [1, 2, 3],
    "nothing": [],
}


def with_tensors(path: Path, *tensors: tuple[str, tuple[int, ...], int, int], data: int) -> Path:
    """A file whose tensor table is as given; `ne` is in ggml's order."""
    table = b""
    for name, ne, kind, offset in tensors:
        table += struct.pack("<Q", len(name)) + name.encode()
        table += struct.pack(f"<I{len(ne)}QIQ", len(ne), *ne, kind, offset)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0) + table
    path.write_bytes(head + bytes(-len(head) % 32 + data))
    return path


def test_values_of_every_kind(tmp_path: Path) -> None:
    assert read_metadata(write_gguf(tmp_path / "a.gguf", METADATA)) == METADATA


def test_embedded_model(gguf_path: Path) -> None:
    metadata = read_metadata(gguf_path)
    assert metadata["general.architecture"] == "llama"
    tokens = metadata["tokenizer.ggml.tokens"]
    assert isinstance(tokens, list) and len(tokens) == 49152
    metadata, infos = read_header(gguf_path)
    assert metadata == read_metadata(gguf_path)
    assert len(infos) == 272
    assert infos[0] == TensorInfo("token_embd.weight", (49152, 576), 8, 1785664, 30081024)
    assert max(info.offset + info.nbytes for info in infos) <= gguf_path.stat().st_size


def test_agrees_with_the_gguf_package(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    path = tmp_path / "b.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_array("words", ["x", "y"])
    writer.add_int64("big", -(2**40))
    writer.add_tensor("weight", numpy.arange(6, dtype=numpy.float32).reshape(2, 3))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert read_metadata(path) == {
        "general.architecture": "llama",
        "words": ["x", "y"],
        "big": -(2**40),
    }
    _, (info,) = read_header(path)
    data = path.read_bytes()[info.offset : info.offset + info.nbytes]
    assert info.shape == (2, 3)
    assert numpy.frombuffer(data, numpy.float32).tolist() == list(range(6))


def test_tensors_are_placed_after_the_padding(tmp_path: Path) -> None:
    path = with_tensors(tmp_path / "t", ("q", (64, 2), 3, 32), data=32 + 80)
    _, (info,) = read_header(path)
    assert info.shape == (2, 64)
    assert info.nbytes == 2 * 2 * 20
    assert info.offset == path.stat().st_size - 80


@pytest.mark.parametrize(
    ("tensor", "data", "reason"),
    [
        (("w", (64, 2), 3, 0), 79, "end of the file"),
        (("w", (33,), 3, 0), 80, "whole blocks"),
        (("w", (32,), 4, 0), 80, "unknown ggml type 4"),
        (("w", (2**40, 2**40), 0, 0), 80, "end of the file"),
        (("w", (1,) * 9, 0, 0), 80, "9 dimensions"),
    ],
)
def test_unusable_tensors(
    tmp_path: Path, tensor: tuple[str, tuple[int, ...], int, int], data: int, reason: str
) -> None:
    with pytest.raises(StartupError, match=reason):
        read_header(with_tensors(tmp_path / "t", tensor, data=data))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "cannot read"),
        (b"PK\3\4" + bytes(40), "magic"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1 is not supported"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "version 50331648"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**62), "cut short"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**62, 0), "cut short"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**63) + bytes(20), "cut short"),
        (b"GGUF" + struct.pack("<IQQQcII", 3, 0, 1, 1, b"k", 77, 0), "unknown value type 77"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"k", 9, 4, 2**61), "cut short"),
    ],
)
def test_hostile_headers(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(StartupError, match=reason) as caught:
        read_metadata(path)
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="cannot read"):
        read_metadata(tmp_path / "none.gguf")


def test_every_truncation_is_found(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf", METADATA).read_bytes()
    part = tmp_path / "part.gguf"
    for size in range(len(whole)):
        part.write_bytes(whole[:size])
        with pytest.raises(StartupError):
            read_metadata(part)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    nested = struct.pack("<IQ", 9, 1) * 5000 + struct.pack("<IQ", 4, 0)
    path = tmp_path / "deep.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"k", 9) + nested)
    with pytest.raises(StartupError, match="nested"):
        read_metadata(path)


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=4))
def test_flipped_bytes_end_as_startup_errors(
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[int, int]],
) -> None:
    folder = tmp_path_factory.getbasetemp()
    data = bytearray(write_gguf(folder / "flip.gguf", METADATA).read_bytes())
    for at, byte in changes:
        data[at % len(data)] = byte
    (folder / "flip.gguf").write_bytes(data)
    with contextlib.suppress(StartupError):
        read_metadata(folder / "flip.gguf")
