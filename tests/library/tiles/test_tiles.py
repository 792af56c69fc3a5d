"""Means and flags of tiles on the CPU against NumPy, the rules that choose tiles, and what is refused."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import fake_torch
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import octopus
from octopus import InputError, best_within, keep_tiles, otsu_threshold, tile_means
from octopus.tiles import api


def test_large_bright_tiles_do_not_overflow(monkeypatch):
    image = np.full((300, 70_000), 65535, np.uint16)
    tiles = [[0, 0, 70_000, 300], [1, 1, 69_999, 299]]
    assert tile_means(image, tiles, device="cpu").tolist() == [1, 1]
    monkeypatch.setattr(api, "PART", 1)
    assert tile_means(image, tiles, scale=1, device="cpu").tolist() == [65535, 65535]


def test_a_tile_as_bright_as_the_threshold_is_dropped_and_one_without_data_too():
    image = np.array([[10, 10, 7]], np.uint8)
    flags, means = keep_tiles(image, [[0, 0, 2, 1], [2, 0, 3, 1]], 0.1, scale=100, nodata=7, device="cpu")
    assert flags.tolist() == [False, False] and means[0] == 0.1 and np.isnan(means[1])


def test_a_plan_is_for_any_image_like_the_first_and_takes_rows_apart():
    first = np.zeros((4, 6), np.uint8)
    plan = octopus.TilePlan(first, [[0, 0, 3, 4], [3, 0, 6, 4]], device="cpu", scale=1)
    wide = np.arange(48, dtype=np.uint8).reshape(4, 12)
    flags, means = plan.run(wide[:, 5:11], 24.0)
    assert means.tolist() == [24, 27] and flags.tolist() == [False, True]
    assert plan.run(wide[:, :6])[0] is flags and flags.all()  # the plan's memory; without a threshold all are kept
    with pytest.raises(InputError, match="the plan is for images"):
        plan.run(wide)


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=2, max_size=30).filter(lambda values: len(set(values)) > 1))
def test_otsu_parts_the_means_where_the_variance_between_is_largest(values):
    values = np.array(values) / 64

    def between(threshold):
        """The variance between the groups, as Otsu defined it."""
        above = values > threshold
        return above.sum() * (~above).sum() * (values[above].mean() - values[~above].mean()) ** 2

    threshold = otsu_threshold(values)
    assert values.min() < threshold < values.max()
    assert np.isclose(between(threshold), max(map(between, np.unique(values)[:-1])))


def test_otsu_of_equal_means_keeps_none_and_leaves_out_what_has_no_data():
    assert otsu_threshold([0.3, 0.3]) == 0.3
    assert otsu_threshold([0.5]) == 0.5
    assert otsu_threshold([0.1, np.nan, 0.9]) == 0.5
    low = 0.5
    high = np.nextafter(low, 1)
    assert low <= otsu_threshold([low, high]) < high


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers(0, 60))
def test_the_best_that_fit_leave_no_room_for_a_better_one(tiles, budget):
    means, sizes = np.array(tiles, float).reshape(-1, 2).T
    kept = best_within(means, sizes, budget)
    assert sizes[kept].sum() <= budget
    for tile in np.flatnonzero(~kept):
        before = (means > means[tile]) | ((means == means[tile]) & (np.arange(len(means)) < tile))
        assert sizes[kept & before].sum() + sizes[tile] > budget


@pytest.mark.usefixtures("torch_without_gpu")
@pytest.mark.parametrize("count", [2, 0])
def test_tensors_give_tensors(count):
    image = np.array([[10, 30]], np.uint8)
    tiles = np.array([[0, 0, 1, 1], [1, 0, 2, 1]])[:count]
    plan = octopus.TilePlan(fake_torch.Tensor(image), tiles, scale=40, device="cpu")
    for flags, means in (
        plan.run(fake_torch.Tensor(image), 0.5),
        keep_tiles(fake_torch.Tensor(image), tiles, 0.5, scale=40, device="cpu"),
    ):
        assert type(flags) is type(means) is fake_torch.Tensor
        assert (flags.dtype.name, means.dtype.name) == ("bool", "float64")
        assert flags.array.tolist() == [False, True][:count]
        assert means.array.tolist() == [0.25, 0.75][:count]


@pytest.mark.usefixtures("torch_without_gpu")
def test_sparse_images_say_the_remedy():
    image = fake_torch.Tensor(np.ones((4, 6), np.uint8))
    image.layout = "torch.sparse_coo"
    with pytest.raises(InputError, match="to_dense"):
        keep_tiles(image, [[0, 0, 1, 1]], 0.5)


def test_a_plan_at_work_refuses_a_second_thread(monkeypatch):
    image = np.zeros((4, 6), np.uint8)
    plan = octopus.TilePlan(image, [[0, 0, 3, 4]], device="cpu")
    work = plan._run_cpu

    def slow(*given):
        with ThreadPoolExecutor(1) as pool, pytest.raises(InputError, match="at work in another thread"):
            pool.submit(plan.run, image).result()
        work(*given)

    monkeypatch.setattr(plan, "_run_cpu", slow)
    assert plan.run(image)[1].tolist() == [0]
    assert plan.run(image)[1].tolist() == [0]  # and is free again


def test_a_plan_may_be_sent_to_another_process():
    image = np.arange(200, dtype=np.uint8).reshape(10, 20)
    plan = octopus.TilePlan(image, [[0, 0, 5, 5], [3, 2, 20, 10]], device="cpu")
    assert np.array_equal(pickle.loads(pickle.dumps(plan)).run(image, 0.2), plan.run(image, 0.2))


def test_tiles_that_are_changed_later_change_no_plan():
    image, tiles = np.arange(24, dtype=np.uint8).reshape(4, 6), np.array([[0, 0, 1, 1]], np.int32)
    plan = octopus.TilePlan(image, tiles, scale=1, device="cpu")
    tiles[:] = 2**30
    assert plan.run(image)[1].tolist() == [0]
