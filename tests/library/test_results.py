"""Memory of results on the host: kept for the next result, and never while an earlier one is in use."""

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from octopus import images
from octopus.arrays import results
from octopus.arrays.results import LEAST_KEPT, MOST_KEPT, host_memory

FLOATS = LEAST_KEPT // 4


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    results._kept.clear()
    yield
    results._kept.clear()


def place(array):
    return array.__array_interface__["data"][0]


def test_the_next_result_takes_the_memory_of_one_that_is_gone():
    first = host_memory((2, FLOATS), "float32")
    there = place(first)
    del first
    second = host_memory((FLOATS, 3), "int16")  # 3/4 of it
    assert place(second) == there and second.shape == (FLOATS, 3) and second.dtype == np.int16
    assert second.flags.writeable and second.flags.c_contiguous


@pytest.mark.parametrize("use", [
    lambda array: array[1, ::-2][3:], lambda array: memoryview(array), lambda array: np.from_dlpack(array.view()),
    lambda array: array.reshape(-1).view(np.uint8)[None].T,
], ids=["a view", "a buffer", "dlpack", "a view of a view"])  # fmt: skip
def test_memory_in_use_is_not_given_again(use):
    first = host_memory((2, FLOATS), "float32")
    first[:] = 7
    held = use(first)
    there, before = place(first), np.array(held)
    del first
    gc.collect()
    second = host_memory((2, FLOATS), "float32")
    second[:] = 9
    assert place(second) != there and np.array_equal(held, before)
    del held
    assert place(host_memory((2, FLOATS), "float32")) == there


def test_small_huge_and_unfitting_results_have_memory_of_their_own():
    assert host_memory((FLOATS - 1,), "float32").flags.owndata
    assert host_memory((MOST_KEPT // 4 + 1,), "float32").flags.owndata
    large = host_memory((4 * FLOATS,), "float32")
    there = place(large)
    del large
    assert place(host_memory((FLOATS,), "float32")) != there  # less than half of it


def test_what_is_kept_has_a_limit():
    side = MOST_KEPT // 8
    held = [host_memory((side,), "uint8") for _ in range(12)]
    held.clear()
    assert sum(block.bytes.nbytes for block in results._kept) <= MOST_KEPT
    assert len(results._kept) == 8


def test_threads_never_share_a_result(request):
    request.addfinalizer(partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    start = threading.Barrier(4)

    def work(value):
        start.wait()
        for _ in range(200):
            made = host_memory((LEAST_KEPT,), "uint8")
            made[:: 1 << 12] = value
            assert (made[:: 1 << 12] == value).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # which raises what they raise
    # A thread holds two, the one it has and the next; one that misses what another just gave back makes one more.
    assert len({id(block) for block in results._kept}) == len(results._kept) <= 20  # of 800 results


def test_calls_in_a_row_reuse_memory_and_their_results_are_their_own():
    pictures = [np.full((700, 900, 3), value, np.uint8) for value in (10, 200)]
    first, second = (images.resize([picture], 640) for picture in pictures)
    there = place(first)
    assert np.abs(first - 10).max() < 1e-3 and place(second) != there
    del first
    third = images.resize([pictures[0]], 640)
    assert place(third) == there and np.abs(third - 10).max() < 1e-3 and np.abs(second - 200).max() < 1e-3
