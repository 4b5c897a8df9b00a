"""Runs an operation over an array that is too small: what the sanitizer must see."""

from __future__ import annotations

import numpy as np

from engine.backend.native.library import Library, Pool
from engine.backend.native.operations import Op, OpCode, Program
from engine.backend.native.structures import Limits, Step

ROWS, COLUMNS = 8, 64


def main() -> None:
    library = Library.load(print)
    assert library is not None
    large, small = (np.zeros((rows, COLUMNS), np.float32) for rows in (ROWS, ROWS // 2))
    op = Op.of(OpCode.ADD, ROWS, columns=COLUMNS, input=large, output=large.copy())
    op.input = small.ctypes.data  # past the check
    rows, one = np.arange(ROWS), np.array([0, 1], np.int32)
    step = Step.of(rows, rows, rows, one * ROWS, one, one[:1], rows[:0])
    with Pool(library, 1) as pool:
        pool.run(Program([op], Limits(ROWS, ROWS, 1, ROWS, 0)), step)


if __name__ == "__main__":
    main()
