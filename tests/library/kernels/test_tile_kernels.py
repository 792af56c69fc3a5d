"""The kernel of tile sums without a GPU: PTX for every GPU named, and its grids; its answers stand in `cases.tiles`."""

import re

import numpy as np
import pytest

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus.kernels.cuda import tile_sums
from octopus.kernels.cuda.tile_grid import MOST_LISTED, MOST_PARTS, PAIR, Kind, bands_of, grid_for, grid_of, share_of

PROCESSORS = 132


@pytest.mark.parametrize("nodata", [False, True])
@pytest.mark.parametrize(("dtype", "dot"), [("uint8", "dp4a"), ("uint16", "dp2a")])
def test_kernels_compile_for_every_gpu(dtype, dot, nodata, capability_in_turn):
    ptx = to_ptx(tile_sums.build(Kind(dtype, "int64", nodata)), capability_in_turn)
    assert "tiles_kernel" in entry_name(ptx)
    assert "local_depot" not in ptx and "call" not in re.sub(r"//.*", "", ptx)
    # Two loads of sixteen bytes at once, and the sums of their words by dot products.
    assert len(re.findall(r"ld\.global\.nc\.L1::no_allocate\.v4\.u32", ptx)) >= 2
    assert len(re.findall(rf"{dot}[.a-z]*\.u32\.u32", ptx)) >= 8


def test_one_large_tile_among_many_small_ones_is_shared_by_many_blocks():
    tiles = np.array([[0, 0, 8192, 8192], *[[i, 0, i + 1, 1] for i in range(5000)]], np.int32)
    blocks = np.bincount(grid_of(tiles, 2, 8 * PAIR).work[:, 0])
    assert blocks[0] > 1000 and (blocks[1:] == 1).all()


def test_bands_cover_a_tile_and_are_about_as_large_as_asked_for():
    width, height = np.array([1, 300, 3000, 1 << 16]), np.array([7, 300, 300, 2])
    bands, rows = bands_of(width, height, 2, PAIR)
    assert (bands * rows >= height).all() and ((bands - 1) * rows < height).all()
    assert (rows == [PAIR // 2, PAIR // 600, 1, 1]).all()


def test_small_images_get_short_bands_and_tiles_never_more_blocks_than_are_counted():
    assert share_of(2_000_000, PROCESSORS) == PAIR < share_of(1 << 30, PROCESSORS)
    whole = np.array([[0, 0, 1 << 16, 1 << 17]], np.int32)
    assert grid_of(whole, 2, PAIR).shape == (MOST_PARTS, 1)
    assert grid_for(1, 1 << 16, 1 << 17, 2, PAIR).shape == (1, MOST_PARTS)
    assert grid_for(1 << 20, 8, 8, 1, PAIR).shape == (1 << 20, 1)


def test_the_table_of_tiles_that_overlap_over_and_over_stays_small():
    tiles = np.vstack([np.tile([0, 0, 8192, 8192], (3000, 1)), [0, 0, 1, 1]]).astype(np.int32)
    grid = grid_of(tiles, 2, 8 * PAIR)
    assert MOST_LISTED / 2 < len(grid.work) <= MOST_LISTED + len(tiles)
    blocks = np.bincount(grid.work[:, 0])
    assert (blocks[:-1] > 300).all() and blocks[-1] == 1
    tile, number, of = grid.work.T
    assert (of == blocks[tile]).all() and (number < of).all()
