"""Structures have the layout that C gives them, and no array that C would read past."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.backend.native.build import SOURCES
from engine.backend.native.compiler import find_compilers
from engine.backend.native.drawing import DrawPlan, ScorePlan
from engine.backend.native.library import Library, Pool
from engine.backend.native.operations import Op, OpCode, Program, act_stride
from engine.backend.native.pack import FORM_BF16, FORM_INT4, FORM_INT8, PackedMatrix, blocks_shape
from engine.backend.native.structures import Attention, Limits, Matrix, Pages, Step, pointer
from engine.errors import StartupError

STRUCTURES = (Matrix, Pages, Attention, Op, Step, Limits, DrawPlan, ScorePlan)  # as in program.c
C_NAMES = {"input": "in", "output": "out"}
ROWS, COLUMNS = 4, 64


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def matrix(form: int = FORM_INT8, rows: int = 32, columns: int = COLUMNS) -> Matrix:
    blocks = np.zeros(blocks_shape(form, rows, columns), np.uint8)
    return Matrix.of(PackedMatrix(form, rows, columns, blocks, None))


def attention(context: int = 16) -> Attention:
    return Attention.of(4, 2, 32, floats(context, 16), floats(context, 16), scale=1.0)


def pages(count: int = 2) -> Pages:
    shapes = (count, 2, 16, 16, 2), (count, 2, 8, 32, 2)
    return Pages.of(*(np.zeros(shape, np.uint16) for shape in shapes))


def test_sizes_are_those_of_c(library: Library) -> None:
    sizes = [library.functions.heliograph_size(which) for which in range(len(STRUCTURES) + 1)]
    assert sizes == [*map(ctypes.sizeof, STRUCTURES), 0]


@pytest.mark.skipif(not find_compilers(os.environ)[0], reason="there is no C compiler")
def test_members_are_where_c_has_them(tmp_path: Path) -> None:
    members = [(each, name) for each in STRUCTURES for name, *_ in each._fields_]
    shown = [f"offsetof({each.__name__}, {C_NAMES.get(name, name)})" for each, name in members]
    shown += [f"(size_t){code.name}" for code in map(_c_code, OpCode)]
    forms = (FORM_INT4, FORM_INT8, FORM_BF16)
    shown += [f"act_stride({form}, 96)" for form in forms]
    lines = "".join(f'    printf("%zu\\n", {item});\n' for item in shown)
    source = tmp_path / "layout.c"
    source.write_text(
        '#include <stdio.h>\n#include "native.h"\nint main(void) {\n' + lines + "    return 0;\n}\n"
    )
    (compiler, *_), _ = find_compilers(os.environ)
    compiler.run([f"-I{SOURCES}", str(source), "-o", "layout"], tmp_path)
    done = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True)
    expected = [getattr(each, name).offset for each, name in members]
    expected += [*OpCode, *(act_stride(form, 96) for form in forms)]
    assert list(map(int, done.stdout.split())) == expected


class _c_code:
    def __init__(self, code: OpCode) -> None:
        self.name = f"OP_{code.name}"


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros(8, np.float64), "float64"),
        (np.zeros(8, ">f4"), ">f4"),
        (floats(16)[::2], "contiguous"),
        (floats(4, 4).T, "contiguous"),
        (np.zeros(33, np.uint8)[1:].view(np.float32), "aligned"),
        (floats(7), "7 numbers, fewer than 8"),
        (np.broadcast_to(np.float32(0), (8,)), "contiguous"),
        (np.frombuffer(bytes(32), np.float32), "written"),
    ],
)
def test_an_array_that_c_would_misread_is_refused(array: np.ndarray, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pointer(array, np.float32, 8, written=True)


def test_an_array_that_fits_is_its_address() -> None:
    array = floats(8)
    assert pointer(array, np.float32, 8) == array.ctypes.data
    assert pointer(np.frombuffer(bytes(32), np.float32), np.float32, 8)


def test_a_matrix_needs_all_its_blocks_and_biases() -> None:
    blocks = np.zeros(blocks_shape(FORM_INT4, 32, COLUMNS), np.uint8)
    with pytest.raises(ValueError, match="uint8"):
        Matrix.of(PackedMatrix(FORM_INT4, 32, COLUMNS, blocks.view(np.int8), None))
    with pytest.raises(ValueError, match="fewer"):
        Matrix.of(PackedMatrix(FORM_BF16, 32, COLUMNS, blocks, None))
    with pytest.raises(ValueError, match="31 numbers"):
        Matrix.of(PackedMatrix(FORM_INT4, 31, COLUMNS, blocks, floats(31)))


def test_pages_agree_with_each_other() -> None:
    keys, values = np.zeros((2, 2, 16, 16, 2), np.uint16), np.zeros((2, 2, 8, 32, 2), np.uint16)
    for wrong in (keys[:, :, :, :8], keys[..., :1], keys[:1], keys[:, :, :8]):
        with pytest.raises(ValueError):
            Pages.of(np.ascontiguousarray(wrong), values)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "shape"),
    [
        (4, 3, 32, (16, 16)),
        (0, 0, 32, (16, 16)),
        (34, 2, 32, (16, 16)),
        (4, 2, 24, (16, 12)),
        (4, 2, 272, (16, 136)),
        (4, 2, 32, (16, 32)),
    ],
)
def test_attention_has_limits(
    heads: int, kv_heads: int, head_dim: int, shape: tuple[int, int]
) -> None:
    with pytest.raises(ValueError):
        Attention.of(heads, kv_heads, head_dim, floats(*shape), floats(*shape), scale=1.0)


def operation(code: OpCode) -> dict[str, Any]:
    """Arguments that are just enough."""
    act = np.zeros(ROWS * act_stride(FORM_INT8, COLUMNS), np.uint8)
    both, queries, row = floats(ROWS, 8 * 32), floats(ROWS, 4 * 32), floats(ROWS, COLUMNS)
    heads: dict[str, Any] = {"attention": attention(), "pages": pages(), "input": both}
    into: dict[str, Any] = {"columns": COLUMNS, "form": FORM_INT8, "act": act}
    return {
        OpCode.EMBED: {"matrix": matrix(), "output": row},
        OpCode.NORM: {**into, "weight": floats(COLUMNS), "input": row},
        OpCode.QUANTISE: {**into, "input": row},
        OpCode.LINEAR: {"matrix": matrix(), "act": act, "output": floats(ROWS, 32)},
        OpCode.ROPE: heads,
        OpCode.ATTEND: {**heads, "output": queries},
        OpCode.GATE: {**into, "input": floats(ROWS, 2 * COLUMNS)},
        OpCode.SELECT: {"columns": COLUMNS, "input": row, "output": row},
        OpCode.ADD: {"columns": COLUMNS, "input": row, "output": row},
    }[code]


@pytest.mark.parametrize("code", OpCode)
def test_an_operation_takes_what_is_enough_and_no_less(code: OpCode) -> None:
    enough = operation(code)
    Op.of(code, ROWS, **enough)
    with pytest.raises(ValueError):
        Op.of(code, ROWS + 1, **enough)
    for name in enough.keys() - {"columns", "form"}:
        with pytest.raises(ValueError, match=f"{code.name} lacks its"):
            Op.of(code, ROWS, **enough | {name: None})
    if "weight" not in enough:
        with pytest.raises(ValueError, match="takes no weight"):
            Op.of(code, ROWS, **enough | {"weight": floats(COLUMNS)})


def test_attention_meets_pages_of_its_heads() -> None:
    other = Pages.of(np.zeros((2, 4, 16, 16, 2), np.uint16), np.zeros((2, 4, 8, 32, 2), np.uint16))
    with pytest.raises(ValueError, match="pages have heads"):
        Op.of(OpCode.ROPE, ROWS, **operation(OpCode.ROPE) | {"pages": other})


@pytest.mark.parametrize(
    ("code", "limits", "said"),
    [
        (OpCode.ADD, (ROWS + 1, 32, 2, 16), "room for 4 rows of 5"),
        (OpCode.EMBED, (ROWS, 33, 2, 16), "32 rows of 33"),
        (OpCode.ROPE, (ROWS, 32, 3, 16), "2 pages of 3"),
        (OpCode.ATTEND, (ROWS, 32, 2, 17), "cosines"),
        (OpCode.SELECT, (ROWS + 1, 32, 2, 16), "fewer rows"),
    ],
)
def test_a_program_has_room_for_its_limits(
    code: OpCode, limits: tuple[int, int, int, int], said: str
) -> None:
    op = Op.of(code, ROWS, **operation(code))
    Program([op], Limits(ROWS, 32, 2, 16, 0))
    with pytest.raises(ValueError, match=said):
        Program([op], Limits(*limits, 0))


def step(**changes: Any) -> Step:
    columns: dict[str, Any] = {
        "ids": np.array([1, 2], np.int64),
        "positions": np.array([0, 1], np.int64),
        "slots": np.array([16, 17], np.int64),
        "qo_indptr": np.array([0, 2], np.int32),
        "kv_indptr": np.array([0, 1], np.int32),
        "kv_indices": np.array([1], np.int32),
        "selected": np.array([1], np.int64),
    }
    return Step.of(**columns | changes)


def test_columns_of_a_step_have_the_length_of_its_rows() -> None:
    for name in ("positions", "slots"):
        with pytest.raises(ValueError, match="fewer"):
            step(**{name: np.zeros(1, np.int64)})
    with pytest.raises(ValueError, match="fewer"):
        step(kv_indptr=np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="int32"):
        step(ids=np.zeros(2, np.int32))


WRONG = {
    "ids": ([1, 32], "token id"),
    "positions": ([0, 16], "position"),
    "slots": ([-1, 17], "slot"),
    "qo_indptr": ([0, 1], "index pointer"),
    "kv_indptr": ([0, 2], "index pointer"),
    "kv_indices": ([2], "page index"),
    "selected": ([2], "selected row"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_table_that_is_out_of_bounds_is_named_and_nothing_computed(
    library: Library, name: str
) -> None:
    values, said = WRONG[name]
    output = floats(ROWS, COLUMNS)
    op = Op.of(
        OpCode.ADD, ROWS, columns=COLUMNS, input=np.ones((ROWS, COLUMNS), np.float32), output=output
    )
    program = Program([op], Limits(ROWS, 32, 2, 16, 0))
    with Pool(library, 2) as pool:
        kind = np.int32 if name.startswith(("qo", "kv")) else np.int64
        with pytest.raises(ValueError, match=said):
            pool.run(program, step(**{name: np.array(values, kind)}))
        assert not output.any()
        pool.run(program, step())
        assert output[:2].all() and not output[2:].any()


def test_more_selected_rows_than_there_is_room_for(library: Library) -> None:
    given = operation(OpCode.SELECT) | {"output": floats(1, COLUMNS)}
    small = Op.of(OpCode.SELECT, 1, **given)
    program = Program([small], Limits(ROWS, 32, 2, 16, 0))
    with Pool(library, 1) as pool:
        pool.run(program, step())
        with pytest.raises(ValueError, match="2 rows are selected"):
            pool.run(program, step(selected=np.array([0, 1])))


def test_a_closed_pool_runs_nothing(library: Library) -> None:
    pool = Pool(library, 2)
    pool.close()
    pool.close()
    program = Program([], Limits(ROWS, 32, 2, 16, 0))
    with pytest.raises(ValueError, match="closed"):
        pool.run(program, step())


def test_a_variant_that_is_not_there(
    library: Library, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(StartupError, match="portable"):
        Library(library.functions, "sse9")
    assert Library(library.functions).variant == library.variants[0]


def test_the_environment_chooses_a_variant(
    monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    from engine.backend.native import build

    monkeypatch.setattr(build, "load", lambda *_, **__: library.functions)
    monkeypatch.setenv("HELIOGRAPH_NATIVE_VARIANT", "portable")
    chosen = Library.load(print)
    assert chosen is not None and chosen.variant == "portable"
    monkeypatch.setenv("HELIOGRAPH_NATIVE_VARIANT", "")
    chosen = Library.load(print)
    assert chosen is not None and chosen.variant == library.variants[0]


def test_a_library_that_is_not_ours_is_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from engine.backend.native import build

    monkeypatch.setattr(build, "load", lambda *_, **__: ctypes.CDLL(None))
    assert Library.load(print) is None
    (record,) = caplog.records
    assert "heliograph_" in record.getMessage()
