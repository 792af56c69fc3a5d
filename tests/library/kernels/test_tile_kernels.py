"""The kernel of tile sums without a GPU: answers in Numba's simulator, PTX for every GPU named, and its grids."""

from __future__ import annotations

import re

import numpy as np
import pytest

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus.kernels.cuda import tile_sums
from octopus.kernels.cuda.tile_grid import (
    BATCH,
    MOST_LISTED,
    MOST_PARTS,
    THREADS,
    Kind,
    grid_for,
    grid_of,
    parts_of,
    passes_for,
    strips_of,
)

PROCESSORS = 132


@pytest.mark.parametrize(
    ("aligned", "listed", "nodata"), [(True, False, False), (False, True, False), (True, True, True)]
)
@pytest.mark.parametrize(("dtype", "dot"), [("uint8", "dp4a"), ("uint16", "dp2a")])
def test_kernels_compile_for_every_gpu(dtype, dot, aligned, listed, nodata, capability_in_turn):
    kind = Kind(dtype, "int64", aligned, listed, nodata)
    ptx = to_ptx(tile_sums.build(kind), capability_in_turn)
    assert "tiles_kernel" in entry_name(ptx)
    assert "local_depot" not in ptx and "call" not in re.sub(r"//.*", "", ptx)
    # Four loads of sixteen bytes at once, and the sums of their words by dot products.
    assert len(re.findall(r"ld\.global\.nc\.L1::no_allocate\.v4\.u32", ptx)) == 4
    assert len(re.findall(rf"{dot}[.a-z]*\.u32\.u32", ptx)) >= 16
    assert len(re.findall(r"atom\.global\.add\.u64", ptx)) == (2 if nodata else 1)


def test_one_large_tile_among_many_small_ones_is_shared_by_many_blocks():
    tiles = np.array([[0, 0, 8192, 8192], *[[i, 0, i + 1, 1] for i in range(5000)]], np.int32)
    blocks = np.bincount(grid_of(tiles, 2, 8).work[:, 0])
    assert blocks[0] > 1000 and (blocks[1:] == 1).all()


def test_rows_are_cut_so_that_few_threads_have_no_work():
    columns = np.arange(1, 3000)
    strips = strips_of(columns)
    across = -(-columns // strips)
    assert (across <= THREADS).all() and (strips <= -(-columns // THREADS) + 3).all()
    at_work = columns * (THREADS // across) / (strips * THREADS)
    assert at_work[16:].min() > 0.8  # fewer than a third of a warp's loads per row fit in whole rows anyway
    least = -(-columns // THREADS)
    assert (at_work >= columns * (THREADS // -(-columns // least)) / (least * THREADS)).all()


def test_small_images_get_short_parts_and_tiles_never_more_parts_than_are_counted():
    assert passes_for(2_000_000, PROCESSORS) == BATCH < passes_for(1 << 30, PROCESSORS)
    whole = np.array([[0, 0, 1 << 16, 1 << 16]], np.int32)
    assert grid_of(whole, 2, BATCH).shape == (MOST_PARTS, 1)
    assert grid_for(1, 1 << 16, 1 << 16, 2, BATCH).shape == (1, MOST_PARTS)
    assert grid_for(1 << 20, 8, 8, 1, BATCH).shape == (1 << 20, 1)


def test_the_table_of_tiles_that_overlap_over_and_over_stays_small():
    tiles = np.vstack([np.tile([0, 0, 8192, 8192], (3000, 1)), [0, 0, 1, 1]]).astype(np.int32)
    grid = grid_of(tiles, 2, 16)
    assert MOST_LISTED / 2 < len(grid.work) <= MOST_LISTED + len(tiles)
    blocks = np.bincount(grid.work[:, 0])
    assert (blocks[:-1] > 300).all() and blocks[-1] == 1
    tile, number, of, _ = grid.work.T
    assert (of == blocks[tile]).all() and (number < of).all()


def test_without_a_table_rows_are_cut_into_as_few_strips_as_can_be():
    width, height = np.array([300, 3000]), np.array([300, 300])
    strips, bands, rows = parts_of(width, height, 2, 16, listed=False)
    columns = (width * 2 + 30) // 16
    assert strips.tolist() == [1, 2] == (-(-columns // THREADS)).tolist()
    assert (rows == THREADS // -(-columns // strips) * 16).all() and (bands * rows >= height).all()
