"""Paged attention in torch whose every row has the same bits in any batch, chunk or cache state.

A product's rows are exact when their number is a multiple of what `exact_row_multiple` measures,
and a sum over the context when it runs over fixed blocks of tokens in order: a longer context then
only adds zeros at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.backend.backend import PAGE_TOKENS, StepPlan

BLOCK_TOKENS = 64
BLOCK_PAGES = BLOCK_TOKENS // PAGE_TOKENS
TILE_ROWS = 128
ROW_MULTIPLES = (4, 8, 16)
MOST_GROUP_BLOCKS = 128  # keeps what a group gathers near the size of a cache


@dataclass(frozen=True, slots=True)
class Heads:
    """How queries share keys: `queries` heads read `keys` heads, each of `size` numbers.

    A product's rows come in multiples of `row_multiple`.
    """

    queries: int
    keys: int
    size: int
    row_multiple: int

    @property
    def group(self) -> int:
        """Query heads for each key/value head."""
        return self.queries // self.keys


@dataclass(frozen=True, slots=True)
class Tile:
    """Consecutive rows of one sequence and the pages up to the last of them."""

    first_row: int
    rows: int
    context: int  # tokens, the last row's own included
    pages: NDArray[np.int32]

    @property
    def blocks(self) -> int:
        """Blocks of context, the last one perhaps partly empty."""
        return -(-self.context // BLOCK_TOKENS)


def split_tiles(plan: StepPlan) -> list[Tile]:
    """Cut each sequence's rows into tiles, so that early rows skip the late context."""
    tiles = []
    for index in range(len(plan.qo_indptr) - 1):
        first, end = int(plan.qo_indptr[index]), int(plan.qo_indptr[index + 1])
        pages = plan.kv_indices[plan.kv_indptr[index] : plan.kv_indptr[index + 1]]
        for row in range(first, end, TILE_ROWS):
            rows = min(TILE_ROWS, end - row)
            tiles.append(Tile(row, rows, int(plan.positions[row + rows - 1]) + 1, pages))
    return tiles


def group_tiles(tiles: list[Tile]) -> list[list[Tile]]:
    """Put together tiles of as many rows and of like context, longest first.

    A group pays for its longest context, so one long sequence must not share a group with short
    ones; too many groups would pay in calls.
    """
    groups: list[list[Tile]] = []
    for tile in sorted(tiles, key=lambda tile: (tile.rows, -tile.blocks, tile.first_row)):
        longest = groups[-1][0] if groups else tile
        fits = (
            longest.rows == tile.rows
            and longest.blocks <= tile.blocks + tile.blocks // 2 + 1
            and bool(groups)
            and longest.blocks * len(groups[-1]) < MOST_GROUP_BLOCKS
        )
        if fits:
            groups[-1].append(tile)
        else:
            groups.append([tile])
    return groups


class Group:
    """B tiles of T rows each, padded to one context of C tokens; built once a step."""

    def __init__(self, tiles: list[Tile], heads: Heads, num_pages: int, total_rows: int) -> None:
        self._heads = heads
        self._count, self._rows = len(tiles), tiles[0].rows
        self._width = self._rows * heads.group  # product rows of one tile and key head
        self._context = tiles[0].blocks * BLOCK_TOKENS
        firsts = np.array([tile.first_row for tile in tiles])
        rows = (firsts[:, None] + np.arange(self._rows)).reshape(-1)  # [B * T]
        in_order = len(rows) == total_rows and bool((rows == np.arange(total_rows)).all())
        self._row_ids = None if in_order else torch.from_numpy(rows)
        self._pages = _page_rows(tiles, heads.keys, num_pages)
        padded = -(-self._width // heads.row_multiple) * heads.row_multiple
        self._mask = _mask(tiles, heads.group, padded)  # [B, P or 1, C]
        self._query = torch.zeros(heads.keys, self._count, padded, heads.size)  # [keys, B, P, D]

    def attend(self, q: Tensor, keys: Tensor, values: Tensor, out: Tensor) -> None:
        """Fill the group's rows of out [N, queries * D].

        q is [N, queries, D]; keys and values are a layer's pools [keys, pages, 16, D].
        """
        heads, batch = self._heads, self._heads.keys * self._count
        split = (self._count, self._rows, heads.keys, heads.group, heads.size)
        own = q if self._row_ids is None else q.index_select(0, self._row_ids)
        query = self._query[:, :, : self._width].unflatten(2, (self._rows, heads.group))
        query.copy_(own.view(split).permute(2, 0, 1, 3, 4))
        k, v = self._gather(keys), self._gather(values)  # [keys * B, C, D]
        scores = _scores(self._query.view(batch, -1, heads.size), k)  # [keys * B, P, C]
        scores.view(heads.keys, self._count, -1, self._context).add_(self._mask)
        mixed = _mix(torch.softmax(scores, -1), v)  # [keys * B, P, D]
        result = mixed.view(self._query.shape)[:, :, : self._width]
        result = result.unflatten(2, (self._rows, heads.group)).permute(1, 2, 0, 3, 4)
        if self._row_ids is None:
            out.view(split).copy_(result)
        else:
            out.index_copy_(0, self._row_ids, result.reshape(len(self._row_ids), -1))

    def _gather(self, pool: Tensor) -> Tensor:
        """Copy the group's pages out of a pool as fp32 [keys * B, C, D]."""
        pages = pool.view(-1, PAGE_TOKENS * self._heads.size).index_select(0, self._pages)
        return pages.view(-1, self._context, self._heads.size).float()


def exact_row_multiple(head_dim: int) -> int:
    """Measure the row count whose multiples give a product's rows the same bits.

    Matrix libraries finish the rows that their kernel's height leaves over in another order; the
    height depends on the CPU.
    """
    generator = torch.Generator().manual_seed(0)
    rows, context = 15 * ROW_MULTIPLES[-1], 3 * BLOCK_TOKENS
    query = torch.randn(3, rows, head_dim, generator=generator)  # [batch, P, D]
    keys = torch.randn(3, context, head_dim, generator=generator)  # [batch, C, D]

    def exact(multiple: int) -> bool:
        whole = _scores(query, keys)  # [batch, P, C]
        mixed = _mix(whole, keys)  # [batch, P, D]
        for count in (multiple, 2 * multiple, 3 * multiple, 7 * multiple):
            for batch in (slice(0, 1), slice(0, 3)):
                part = slice(count, 2 * count)
                near = keys[batch, :BLOCK_TOKENS]
                scores = _scores(query[batch, part], near)
                if not torch.equal(scores, whole[batch, part, :BLOCK_TOKENS]):
                    return False
                if not torch.equal(_mix(whole[batch, part], keys[batch]), mixed[batch, part]):
                    return False
        return True

    return next((multiple for multiple in ROW_MULTIPLES if exact(multiple)), ROW_MULTIPLES[-1])


def _scores(query: Tensor, keys: Tensor) -> Tensor:
    """Scaled products [batch, P, C] of query rows [batch, P, D] and keys [batch, C, D]."""
    scores = torch.empty(query.shape[0], query.shape[1], keys.shape[1])
    return scores.baddbmm_(query, keys.transpose(1, 2), beta=0, alpha=query.shape[2] ** -0.5)


def _mix(weights: Tensor, values: Tensor) -> Tensor:
    """Weighted sums [batch, P, D] of values [batch, C, D], block after block."""
    mixed = torch.zeros(weights.shape[0], weights.shape[1], values.shape[2])
    for start in range(0, weights.shape[2], BLOCK_TOKENS):
        block = slice(start, start + BLOCK_TOKENS)
        mixed.baddbmm_(weights[:, :, block], values[:, block])
    return mixed


def _page_rows(tiles: list[Tile], keys: int, num_pages: int) -> Tensor:
    """Rows of the flattened pool [keys * pages, 16 * D] in the order keys, tile, page.

    Page 0 pads: its slots are finite, and masked like all that lies behind a row.
    """
    table = np.zeros((len(tiles), tiles[0].blocks * BLOCK_PAGES), np.int64)  # [B, C / 16]
    for line, tile in zip(table, tiles, strict=True):
        own = tile.pages[: len(line)]
        line[: len(own)] = own
    return torch.from_numpy((np.arange(keys)[:, None, None] * num_pages + table).reshape(-1))


def _mask(tiles: list[Tile], group: int, padded: int) -> Tensor:
    """0 where a product row sees a token, else -inf; [B, P, C], or [B, 1, C] for single rows."""
    rows = tiles[0].rows
    ends = (
        np.array([tile.context for tile in tiles])[:, None] - rows + 1 + np.arange(rows)
    )  # [B, T]
    if rows > 1:
        ends = np.repeat(ends, group, axis=1)
        ends = np.pad(ends, ((0, 0), (0, padded - ends.shape[1])), mode="edge")  # [B, P]
    tokens = np.arange(tiles[0].blocks * BLOCK_TOKENS)
    return torch.from_numpy(np.where(tokens < ends[:, :, None], 0, -np.inf).astype(np.float32))
