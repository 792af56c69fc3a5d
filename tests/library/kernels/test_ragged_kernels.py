"""The kernels on ragged batches without a GPU: answers in Numba's simulator, and PTX for every GPU named."""

import re
from itertools import product

import pytest

from octopus.backends.cuda.compile import to_ptx
from octopus.kernels.cuda import best, ragged
from octopus.kernels.cuda.ragged_tiles import BLOCKS_PER_SM, Kind, Shape, shape_for
from octopus.ragged.blockmap import STRATEGIES

SCRIPT = "simulate_ragged.py"


def test_values_behind_the_last_offset_belong_to_the_last_item(answers):
    assert answers["beyond"] < 1e-6


def test_gamma_holds_at_its_limits_whatever_stands_beside(answers):
    unlike, same_in_packs = answers["limits"]
    assert unlike == [] and same_in_packs


def test_the_best_of_each_row_is_numpys_and_of_equal_ones_the_first(answers, capability_in_turn):
    assert answers["best"] == [] and "local_depot" not in to_ptx(best.build(), capability_in_turn)


KERNELS = [("multiply", "float32", 4), ("blur3x3", "uint8", 4), ("gamma", "float32", 4), ("gamma", "uint8", 16)]


# How a thread finds its item is the same code for all operations: each strategy is compiled with two of them.
@pytest.mark.parametrize(("strategy", "kernel"), [
    (strategy, KERNELS[(number + step) % 4]) for number, strategy in enumerate(STRATEGIES) for step in (0, 1)
])  # fmt: skip
def test_kernels_compile_for_every_gpu_without_local_memory(strategy, kernel, capability_in_turn):
    operation, dtype, values = kernel
    kind = Kind(operation, strategy, dtype, dtype, "int64", values, 4, 128)
    ptx = to_ptx(ragged.build(kind), capability_in_turn)
    assert "local_depot" not in ptx and "call" not in re.sub(r"//.*", "", ptx)


def test_memory_bound_operations_load_and_store_sixteen_bytes(capability_in_turn):
    for dtype, values, store in (("float32", 4, r"st\.global\.cs\.v4\.f32"), ("uint8", 16, r"st\.global\.cs\.v4\.b32")):
        kind = Kind("multiply", "block_search", dtype, dtype, "int32", values, 4, 128)
        ptx = to_ptx(ragged.build(kind), capability_in_turn)
        assert len(re.findall(r"ld\.global\.nc\.L1::no_allocate\.v4", ptx)) >= 4
        assert re.search(store, ptx)


def test_small_batches_get_as_many_blocks_as_they_can():
    large = shape_for("multiply", "block_search", "float32", 10**8, 1000, 132)
    small = shape_for("multiply", "block_search", "float32", 10**5, 1000, 132)
    assert large == Shape(4, 4, 128) and small.packs == 1
    assert small.blocks(10**5) > large.blocks(10**5)
    assert large.blocks(10**8) >= BLOCKS_PER_SM * 132


def test_what_is_not_aligned_or_too_small_for_packs_goes_one_by_one():
    for dtype, operation in product(("float32", "uint8"), ("multiply", "blur3x3")):
        assert shape_for(operation, "block_search", dtype, 10**8, 10, 132, aligned=False).values == 1
    assert shape_for("blur3x3", "block_search", "float32", 10**8, 10**6, 132).values == 1
    assert shape_for("multiply", "block_search", "uint8", 10**8, 10**6, 132).values == 16
