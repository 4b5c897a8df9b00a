"""How rows are cut into tiles and tiles put into groups."""

from __future__ import annotations

import numpy as np

from engine.backend.attention import (
    BLOCK_TOKENS,
    MOST_GROUP_BLOCKS,
    TILE_ROWS,
    Tile,
    exact_row_multiple,
    group_tiles,
    split_tiles,
)
from tests.engine.plans import Rows, plan_of


def tile(rows: int, context: int, first_row: int = 0) -> Tile:
    return Tile(first_row, rows, context, np.zeros(1, np.int32))


def test_long_prefills_are_cut_and_early_tiles_see_less() -> None:
    plan = plan_of([Rows(range(300), 20, range(1, 22)), Rows([7], 40, range(30, 33))])
    tiles = split_tiles(plan)
    assert [(part.first_row, part.rows, part.context) for part in tiles] == [
        (0, TILE_ROWS, 20 + TILE_ROWS),
        (TILE_ROWS, TILE_ROWS, 20 + 2 * TILE_ROWS),
        (2 * TILE_ROWS, 300 - 2 * TILE_ROWS, 320),
        (300, 1, 41),
    ]
    assert tiles[-1].pages.tolist() == [30, 31, 32]


def test_decodes_of_like_context_share_a_group() -> None:
    groups = group_tiles([tile(1, 40, row) for row in range(16)])
    assert [len(group) for group in groups] == [16]
    assert [part.first_row for part in groups[0]] == list(range(16))


def test_a_long_context_stands_alone() -> None:
    groups = group_tiles([tile(1, 40), tile(1, 30 * BLOCK_TOKENS), tile(1, 50), tile(8, 40)])
    assert [[part.blocks for part in group] for group in groups] == [[30], [1, 1], [1]]


def test_groups_stay_small() -> None:
    groups = group_tiles([tile(1, 40 * BLOCK_TOKENS) for _ in range(10)])
    assert sum(len(group) for group in groups) == 10
    assert max(len(group) for group in groups) * 40 <= MOST_GROUP_BLOCKS + 40


def test_the_row_multiple_is_small() -> None:
    assert exact_row_multiple(64) in (4, 8, 16)
