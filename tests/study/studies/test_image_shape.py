"""The study of image shapes, with stand-ins for PyTorch, deepinv and the GPU."""

from dataclasses import replace

import fake_denoisers
import numpy as np
import pytest

from octopus_study.config import Config
from octopus_study.measure import Budget, HostClock, validate_rows
from octopus_study.studies.image_shape import denoisers, forwards, patches, spread, working_set
from octopus_study.studies.image_shape import study as image_shape

BUDGET = Budget(min_blocks=2, max_blocks=3, min_seconds=0, max_seconds=0.1, give_up_seconds=5)


@pytest.fixture
def torch(monkeypatch):
    """PyTorch's stand-in, which `denoisers.load` gives."""
    with fake_denoisers.packages() as (fake, zoo):
        monkeypatch.setattr(denoisers, "load", lambda device="cpu": (fake, zoo))
        yield fake


@pytest.fixture
def on_gpu(torch, monkeypatch):
    monkeypatch.setattr(forwards, "clock", lambda: HostClock(layer="device"))


def measured(orders, folder):
    return [row for order in orders for row in forwards.measure(order, folder)]


def orders(folder, methods=denoisers.METHODS, compared=True):
    image = np.random.default_rng(0).integers(0, 256, (64, 136, 3), np.uint8)
    np.save(folder / "image.npy", image)
    given = ("synthetic", "drunet-interventions", "drunet")
    return [
        forwards.Order(*given, method, [68, 128], BUDGET, 42, 100 * number, compared)
        for number, method in enumerate(methods)
    ]


def by_method(rows, quantity, width):
    return {row.method: row.value for row in rows if row.quantity == quantity and row.n == width}


def test_the_published_widths_are_measured_and_alternate_between_split_and_whole():
    settings = Config().image_shape
    assert image_shape.widths(settings, 68)[3:5] == [1228, 1296] == image_shape.intervention_widths(settings)
    assert [width % 8 for width in image_shape.widths(settings, 68)] == [0, 4] * 8
    assert not any(width % 8 for width in image_shape.widths(settings, 64))


def test_each_method_changes_what_its_name_says(torch, tmp_path, on_gpu):
    rows = measured(orders(tmp_path), tmp_path)
    validate_rows(rows)
    whole = {"as-published": 0, "padded-whole": 0, "forced-split": 1} | dict.fromkeys(denoisers.CUDNN, 0)
    assert by_method(rows, "split_calls", 128) == whole
    assert by_method(rows, "split_calls", 68) == {**dict.fromkeys(whole, 1), "padded-whole": 0}
    split, all_at_once = by_method(rows, "allocated_peak", 68), by_method(rows, "allocated_peak", 128)
    assert split["padded-whole"] > split["as-published"]
    assert all_at_once["forced-split"] < all_at_once["as-published"]
    assert by_method(rows, "reserved_peak", 68) == by_method(rows, "device_delta", 68)
    # Results are compared, and times of different processes share no block.
    assert {row.answer for row in rows if row.quantity == "forward" and row.n == 128} == {"same"}
    blocks = [row.block for row in rows if row.quantity == "forward" and row.n == 128]
    assert len(set(blocks)) == len(blocks) > len(denoisers.METHODS)


def test_an_answer_that_differs_says_by_how_much_and_why(tmp_path):
    published, padded = orders(tmp_path, ["as-published", "padded-whole"])
    image, kept = np.ones((1, 3, 2, 2), np.float32), tmp_path / "kept.npy"
    assert forwards.answer_of(padded, kept, image) == "n/a"
    assert forwards.answer_of(published, kept, image) == "same"
    answer = forwards.answer_of(padded, kept, 1.5 * image)
    assert answer.error == 0.5
    assert forwards.WHY_DIFFERENT["padded-whole"] in answer
    assert "NaN" in forwards.answer_of(published, kept, np.nan * image)


def test_a_width_that_fails_is_a_gap_and_the_others_go_on(torch, tmp_path, on_gpu, monkeypatch):
    whole = fake_denoisers.Network.forward_unet

    def small(network, images):
        if images.shape[-1] == 128:
            raise RuntimeError("CUDA out of memory")
        return whole(network, images)

    monkeypatch.setattr(fake_denoisers.Network, "forward_unet", small)
    rows = measured(orders(tmp_path, ["as-published"]), tmp_path)
    validate_rows(rows)
    failed = [row for row in rows if row.n == 128]
    assert [row.answer for row in failed] == ["unavailable: RuntimeError: CUDA out of memory"] * 6
    assert by_method(rows, "split_calls", 68) == {"as-published": 1}


def test_the_settings_of_cudnn_hold_for_the_run_alone(torch):
    denoiser, cudnn, seen = denoisers.Denoiser("drunet", "cpu"), torch.backends.cudnn, []
    whole = denoiser.network.forward_unet
    denoiser.network.forward_unet = lambda images: (seen.append((cudnn.enabled, cudnn.benchmark)), whole(images))[1]
    for method in denoisers.CUDNN:
        denoiser.by(method)(fake_denoisers.tensor(np.zeros((1, 3, 64, 64))))
    assert seen == [(True, True), (True, False), (False, False)]
    assert (cudnn.enabled, cudnn.benchmark) == (True, False)


def test_a_process_that_fails_leaves_gaps_with_its_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(forwards, "__name__", "octopus.no_such_module")
    some = orders(tmp_path, ["as-published"], compared=False)
    rows = list(forwards.in_processes(some, tmp_path))
    validate_rows(rows)
    assert {row.n for row in rows} == {68}
    assert all("No module named 'octopus.no_such_module'" in row.answer for row in rows)


@pytest.mark.parametrize(("side", "count"), [(32, 4), (48, 4), (64, 1), (100, 1)])
def test_patches_cover_the_image(side, count):
    image = np.arange(64 * 64 * 3).reshape(64, 64, 3)
    found = patches.patches(image, side)
    assert len(found) == count
    assert np.unique(np.concatenate([patch.reshape(-1) for patch in found])).size == image.size


def test_all_patch_sizes_are_timed_together_against_the_published_best(quick_context, torch, on_gpu):
    context = quick_context("image_shape")
    image = image_shape._image(context, square=True)
    assert image.shape == (64, 64, 3)
    rows = patches.rows(context, patches.comparisons(context, "dncnn"), "dncnn", image)
    validate_rows(rows)
    timed = [row for row in rows if row.quantity == "cover" and row.value is not None]
    assert {row.method for row in timed} == {"32x1", "32x2", "32x2-again"}
    assert {row.answer for row in timed} == {"same"}
    assert {row.n for row in timed} == {64}
    peaks = {row.method: row.value for row in rows if row.quantity == "batch_peak"}
    assert peaks == {"32x1": 3 * 32 * 32, "32x2": 2 * 3 * 32 * 32}
    assert torch.cuda.emptied == len(peaks)


@pytest.fixture
def tiled(torch, tmp_path, on_gpu):
    """The order of an image that one GPU has denoised, whole."""
    some = [replace(order, workload="drunet-spread", widths=[128]) for order in orders(tmp_path, spread.WHOLE)]
    rows = measured(some, tmp_path)
    assert by_method(rows, "allocated_peak", 128) == dict.fromkeys(spread.WHOLE, 3 * 64 * 128)
    return some[0]


def test_two_processes_share_the_tiles_and_each_tells_its_memory(tiled, tmp_path):
    rows = list(spread.rows(tiled, tmp_path, 2, "fake_denoisers:share"))
    validate_rows(rows)
    planned = [(method, *quantity) for method in spread.WAYS for quantity in spread.quantities(method)]
    assert [(row.method, row.layer, row.quantity, row.unit) for row in rows] == planned
    whole, half = 3 * 64 * 128, 3 * 64 * 64
    firsts = {"tiles": whole, "tiles-two-gpus": half, "tiles-two-gpus-singly": half / 2}
    assert by_method(rows, "allocated_peak", 128) == firsts == by_method(rows, "first_allocated_peak", 128)
    assert by_method(rows, "allocated_peak_gpu1", 128) == {name: firsts[name] for name in list(firsts)[1:]}
    assert {row.answer for row in rows if not row.quantity.endswith("gpu1")} == {"same"}


def test_tiles_that_another_gpu_changes_are_told(tiled, tmp_path):
    next(spread.rows(tiled, tmp_path, 1, "fake_denoisers:share"))
    np.save(tmp_path / "tiles.npy", 2 * np.load(tmp_path / "tiles.npy"))
    way = replace(tiled, method="tiles-two-gpus-singly")
    assert {row.status for row in spread.share(way, tmp_path, 1, 0)} == {"different"}


def test_without_a_second_gpu_or_where_a_process_fails_rows_say_why(tiled, tmp_path):
    rows = list(spread.rows(tiled, tmp_path, 1, "fake_denoisers:nothing"))
    validate_rows(rows)
    assert len(rows) == sum(len(spread.quantities(method)) for method in spread.WAYS)
    assert {row.reason for row in rows if row.method != "tiles"} == {"needs 2 GPUs of one host, here is 1"}
    assert all("nothing" in row.reason for row in rows if row.method == "tiles")


def test_convolutions_are_timed_below_and_beyond_the_l2(quick_context, torch, on_gpu):
    context = quick_context("image_shape")
    l2 = 2**20
    rows = working_set.rows(context, working_set.comparisons(context), torch, l2)
    validate_rows(rows)
    sets = {row.method: row.value / l2 for row in rows if row.quantity == "working_set"}
    assert all(0.4 * share < sets[name] <= share for name, share in working_set.SHARES.items())
    pixels = {row.method: row.value for row in rows if row.quantity == "pixels"}
    assert pixels["double-l2"] == 16 * 64**2
    assert {row.value for row in rows if row.quantity == "cache"} == {l2}
    timed = {row.method: row.answer for row in rows if row.quantity == "convolutions" and row.value is not None}
    assert timed == dict.fromkeys([*working_set.SHARES, "nearly-l2-again"], "same")
