"""Items that differ: exactness of quadrilaterals, and what the driver is asked for on a pretended GPU."""

import numpy as np
import pytest
from cases.crops import random_frame
from cases.varied import quads_of
from pretended import OnGpu

from octopus import CropPlan, FitHeight, InputError, crop_resize, map_back
from octopus_study.reference import crops as reference

FRAMES = [random_frame(40, 60), random_frame(30, 90, seed=1)]
BOXES = [np.array([[1, 2, 9, 12], [5, 5, 50, 30]], np.float32), np.array([[0, 0, 90, 30]], np.float32)]
SIZES = np.array([[8, 5], [20, 33], [4, 4]])
EXACT = 1e-4  # of the values' range, as promised


def random_quads(count, height, width, random):
    """Convex ones of any size and perspective, of which some reach beyond the frame."""
    middle = random.uniform(0, 1, (count, 1, 2)) * (width, height)
    side = np.exp(random.uniform(np.log(4), np.log(0.6 * width), (count, 1, 1)))
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) + random.uniform(-0.45, 0.45, (count, 4, 2))
    angle = random.uniform(0, 2 * np.pi, count)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    return ((corners * side * (0.5, 0.3)) @ turn + middle).astype(np.float32)


def test_random_quadrilaterals_are_exact_in_a_large_frame():
    random = np.random.default_rng(8)
    frame = random.integers(0, 256, (1500, 2600, 3), np.uint8)
    quads = random_quads(60, *frame.shape[:2], random)
    batch = crop_resize(frame, quads, FitHeight(48, max_width=400), device="cpu", scale=255, layout="NHWC")
    for quad, found in zip(quads, batch, strict=True):
        right = reference.warp(frame, quad[None], found.shape[:2], np.zeros(3), np.full(3, 255.0), "NHWC")[0]
        assert np.abs(found - right).max() <= EXACT


def test_points_come_back_to_the_corners_and_where_samples_were_taken():
    quads, size = quads_of(40, 60), (7, 12)
    corners = map_back(np.tile([[0, 0], [12, 0], [12, 7], [0, 7]], (len(quads), 1, 1)), quads, size)
    assert np.allclose(corners, quads, atol=1e-9)
    y, x = np.mgrid[:7, :12].reshape(2, -1) + 0.5
    points = map_back(np.tile(np.stack([x, y], -1), (len(quads), 1, 1)), quads, size)
    for quad, found in zip(quads, points, strict=True):
        assert np.allclose(found - 0.5, reference.in_quad(quad, size).T, atol=1e-8)
    maps = np.array([[[0.5, 0.2, 3], [-0.1, 0.7, 9]]])
    assert np.allclose(map_back([[[0.5, 0.5], [2.5, 1.5]]], maps), [[[3.5, 9.5], [4.7, 10.0]]])


def test_an_item_does_not_depend_on_threads_or_neighbours(monkeypatch):
    quads, large = quads_of(40, 60), np.array([[300, 200], [90, 70]])
    for count in (1, 3):
        monkeypatch.setattr("octopus.crop.cpu.threads.get_num_threads", lambda count=count: count)
        batch = crop_resize(FRAMES[0], quads[:2], large, device="cpu")
        for quad, size, item in zip(quads, large, batch, strict=False):
            assert np.array_equal(item, crop_resize(FRAMES[0], quad[None], tuple(size.tolist()), device="cpu")[0])


def there(arrays):
    return [OnGpu(array) for array in arrays]


def test_all_frames_and_sizes_take_one_upload_and_one_launch(gpu):
    crop_resize(there(FRAMES), there(BOXES), SIZES)
    assert len(gpu.launches) == 1 and len(gpu.uploads) == 1


def test_frames_from_the_host_travel_with_the_table_and_come_back(gpu):
    found = crop_resize(FRAMES, BOXES, SIZES, device="cuda")
    wanted = [*(frame.nbytes for frame in FRAMES), found.values.nbytes]
    assert len(gpu.launches) == 1 and len(gpu.uploads) == 4 and set(wanted) <= set(gpu.uploads), gpu.uploads
    assert isinstance(found.values, np.ndarray)


def test_a_run_like_the_one_before_uploads_nothing_and_can_be_captured(gpu):
    frames, boxes, others = there(FRAMES), there(BOXES), there([frame.copy() for frame in FRAMES])
    plan = CropPlan(frames, 3, SIZES)
    assert plan.gpu_bytes > plan.run(frames, boxes).values.nbytes
    uploads, allocated = len(gpu.uploads), gpu.allocated
    stream = gpu.create_stream()
    plan.run(frames, boxes, stream=stream)
    gpu.captured.add(stream.handle)
    plan.run(frames, boxes, stream=stream)
    assert (len(gpu.uploads), gpu.allocated, len(gpu.work)) == (uploads, allocated, 1)
    with pytest.raises(InputError, match="make a run before with frames"):
        plan.run(others, boxes, stream=stream)
    gpu.captured.clear()
    table = gpu.launches[-1].values[1]
    plan.run(others, boxes)  # whose table must not take the place of the graph's
    assert gpu.launches[-1].values[1] != table


def test_what_must_read_boxes_is_not_captured(gpu):
    frame, box = OnGpu(FRAMES[0]), OnGpu(BOXES[0])
    plan, stream = CropPlan(frame, 2, (4, 4), outside="error", pad_to=5), gpu.create_stream()
    gpu.captured.add(stream.handle)
    with pytest.raises(InputError, match='outside="error" and FitHeight read the boxes'):
        plan.run(frame, box, stream=stream)
