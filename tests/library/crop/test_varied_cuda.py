"""Items that differ on a GPU, beside those of the table: graphs, streams, and what can't be made."""

import numpy as np
import pytest
from cases.crops import random_frame
from cases.varied import quads_of
from gpu import host, slow_stream, synchronize

from octopus import CropPlan, FitHeight, crop_resize, map_back
from octopus.backends.cuda import memory
from octopus.blockmap import STRATEGIES
from octopus.crop import varied

pytestmark = pytest.mark.gpu

FRAMES = [random_frame(200, 300), random_frame(120, 500, seed=1), random_frame(64, 64, seed=2)]
QUADS = [quads_of(*frame.shape[:2]) for frame in FRAMES]
RULE = FitHeight(48, max_width=320, multiple=4)
CLOSE = 0.02


def right(**options):
    return crop_resize(FRAMES, QUADS, RULE, device="cpu", **options)


def there(arrays):
    return [memory.upload(array) for array in arrays]


def assert_close(found, expected):
    synchronize()
    assert np.abs(host(found.values) - expected.values).max() < CLOSE


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_finds_the_items(strategy):
    frames, sizes = there(FRAMES), np.concatenate([RULE.sizes(each) for each in QUADS])
    given = varied.planned(frames, (4, 2), {})
    plan = varied.VariedPlan(given, len(sizes), sizes, "cuda", strategy=strategy)
    assert_close(plan.call(frames, there(QUADS), None, None, {}), right())


def test_frames_from_the_host_are_done_on_the_gpu_too():
    found = crop_resize(FRAMES, QUADS, RULE, device="cuda")
    assert isinstance(found.values, np.ndarray)
    assert_close(found, right())


def test_a_run_is_behind_what_the_stream_has():
    stream, frames = slow_stream(), there(FRAMES)
    out = memory.DeviceArray(right().values.shape, np.float32)
    crop_resize(frames, there(QUADS), RULE, out=out, stream=stream)
    stream.sync()
    assert np.abs(host(out) - right().values).max() < CLOSE


def test_unusable_ones_give_nan_or_0_and_leave_the_others_alone():
    good = QUADS[0][0]
    bad = np.array([good, good[[0, 2, 1, 3]], good * np.nan, good[[0, 1, 1, 3]]], np.float32)
    frame, boxes = memory.upload(FRAMES[0]), memory.upload(bad)
    for dtype, gives in (("float32", np.nan), ("uint8", 0)):
        found, sizes = crop_resize(frame, boxes, [[9, 7]] * 4, pad_to=(10, 10), pad_value=3, dtype=dtype)
        made = host(found)
        assert np.array_equal(made[1:, :, :9, :7], np.full((3, 3, 9, 7), gives, dtype), equal_nan=dtype != "uint8")
        assert (made[:, :, 9] == 3).all() and (made[..., 7:] == 3).all() and sizes.tolist() == [[9, 7]] * 4
        assert not np.isnan(made[0]).any()


def test_a_captured_run_follows_the_memory_of_frames_and_boxes():
    torch = pytest.importorskip("torch")
    frames = [torch.from_numpy(frame).cuda() for frame in FRAMES]
    quads, sizes = [torch.from_numpy(each).cuda() for each in QUADS], np.concatenate([RULE.sizes(q) for q in QUADS])
    plan = CropPlan(frames, len(sizes), sizes, box_shape=(4, 2))
    plan.run(frames, quads)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = plan.run(frames, quads)
    turned = FRAMES[0][::-1].copy()
    frames[0].copy_(torch.from_numpy(turned))
    graph.replay()
    torch.cuda.synchronize()
    expected = crop_resize([turned, *FRAMES[1:]], QUADS, sizes, device="cpu")
    assert np.abs(made.values.cpu().numpy() - expected.values).max() < CLOSE


def test_points_come_back_on_the_side_of_tensors():
    torch = pytest.importorskip("torch")
    quads = torch.from_numpy(QUADS[0]).cuda()
    corners = torch.tensor([[0.0, 0], [12, 0], [12, 7], [0, 7]]).cuda().expand(len(quads), 4, 2)
    found = map_back(corners, quads, (7, 12))
    assert found.is_cuda and torch.allclose(found.float(), quads, atol=1e-3)
