"""What `crop_resize` promises of its answers, on the CPU; other libraries stand in `test_parity.py`."""

import hypothesis.strategies as st
import numpy as np
import pytest
from cases.crops import BOXED, PAD_MODES, Crops, random_frame, usable
from hypothesis import given, settings

from octopus import CropPlan, InputError, crop_resize, map_back, rotated_boxes
from octopus.crop.check import check_host_boxes
from octopus_study.reference import crops as reference

FINE = 5e-3  # a position among 300 pixels in single precision is good to 2e-5, between two pixels 255 apart
POSITIONS = 0.02  # of maps: 3e-5 off
BOXES = [
    (0, 0, 1, 1), (299, 199, 300, 200), (0, 0, 300, 200), (0, 0, 300, 1), (299, 0, 300, 200), (5, 7, 9, 10),
    (1, 1, 299, 199), (20, 30, 53, 160),
]  # fmt: skip
FRAME = random_frame()
FILTERS = ("nearest", "bilinear", "bicubic")
MAPS = np.array(
    [
        [[0.71, 0.23, 60.3], [-0.31, 0.83, 50.7]], [[-1.37, 0.11, 250.2], [0.05, 1.13, 12.9]],
        [[2.13, -1.7, 20.4], [1.9, 2.03, -40.6]], [[0, 0, 17.25], [0, 0, 30.75]],
        [[3.3, 5.1, -80.2], [0.003, 0.002, 99.4]],
    ]
)  # fmt: skip


def crops(frame, boxes, size, **options):
    return crop_resize(frame, boxes, size, device="cpu", **options)


def difference(found, expected):
    return np.abs(np.asarray(found, np.float64) - expected).max()


def test_a_sample_on_the_edge_of_two_pixels_takes_the_second():
    """At 3 / 14 of a pixel a rounded scale would put every seventh sample before the edge that it lies on."""
    frame = np.arange(3, dtype=np.uint8)[None, :, None].repeat(2, 0)
    for width in range(1, 200):
        right = (2 * np.arange(width) + 1) * 3 // (2 * width)
        assert np.array_equal(crops(frame, [[0, 0, 3, 2]], (1, width), filter="nearest")[0, 0, 0], right)


@pytest.mark.parametrize("size", [(14, 14), (5, 21)])
def test_rotated_boxes_take_their_samples_where_detectron2_does(size):
    """Its `ROIAlignRotated(aligned=True, sampling_ratio=1)` as its documentation says it: a box is centre, width,
    height, and degrees counter-clockwise."""
    boxes = [
        (100, 90, 60, 30, 0), (150.5, 100.25, 80, 41, 33), (120, 80, 50, 70, -127.5), (150, 100, 199, 120, 180),
        (60, 60, 40, 20, 90), (200, 120, 1, 1, 45),
    ]  # fmt: skip
    maps = rotated_boxes(boxes, size)
    assert maps.shape == (6, 2, 3) and maps.dtype == np.float32
    along, across = np.meshgrid(*((np.arange(n) + 0.5) / n - 0.5 for n in size), indexing="ij")
    columns, rows = np.meshgrid(*map(np.arange, size[::-1]))
    for (x, y, width, height, angle), ((a, b, c), (d, e, f)) in zip(boxes, maps.astype(np.float64), strict=True):
        theta = np.deg2rad(angle)
        right, down = (np.cos(theta), -np.sin(theta)), (np.sin(theta), np.cos(theta))  # y points down
        at = [m - 0.5 + across * width * r + along * height * d for m, r, d in zip((x, y), right, down, strict=True)]
        assert np.allclose([a * columns + b * rows + c, d * columns + e * rows + f], at, atol=1e-4)


def test_an_upright_rotated_box_is_a_box_and_turning_is_counter_clockwise():
    maps = rotated_boxes([[50, 40, 20, 20, 0], [50, 40, 20, 20, 90]], 20)
    upright, turned = crops(FRAME, maps, 20, layout="NHWC")
    assert np.allclose(upright, FRAME[30:50, 40:60], atol=POSITIONS)
    # The box's right side points up: its first row is the frame's column on the left, read from below.
    assert np.allclose(turned, np.rot90(FRAME[30:50, 40:60], -1), atol=POSITIONS)
    torch = pytest.importorskip("torch")
    found = rotated_boxes(torch.tensor([[50.0, 40, 20, 30, 25]]), (9, 7))
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float32


def test_the_identity_gives_the_frame_and_a_shift_a_part_of_it():
    maps = np.array([[[1, 0, 0], [0, 1, 0]], [[1, 0, 20], [0, 1, -5]], [[0, 1, 0], [1, 0, 0]]])
    for filter in FILTERS:
        found = crops(FRAME, maps, (200, 300), filter=filter, dtype="uint8", layout="NHWC")
        assert np.array_equal(found[0], FRAME)
        assert np.array_equal(found[1, 5:, :280], FRAME[:195, 20:])
        assert np.array_equal(found[1, :5, :280], np.repeat(FRAME[:1, 20:], 5, axis=0))
        assert np.array_equal(found[2, :200, :200], FRAME[:200, :200].transpose(1, 0, 2))


def test_reading_beyond_the_box_is_a_cut_from_the_enlarged_frame():
    """With a box on whole pixels, resized k times, the samples are those of the whole frame resized k times."""
    scale = 3
    whole = crops(FRAME, [[0, 0, 300, 200]], (200 * scale, 300 * scale))[0]
    for x1, y1, x2, y2 in BOXES:
        found = crops(FRAME, [[x1, y1, x2, y2]], ((y2 - y1) * scale, (x2 - x1) * scale), edge="image")[0]
        assert difference(found, whole[:, y1 * scale : y2 * scale, x1 * scale : x2 * scale]) < 0.0255


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["box", "image"]))
def test_enlarging_is_not_changed_by_antialiasing_and_a_constant_frame_stays_constant(data, edge):
    height, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 60))
    low = [data.draw(st.floats(0, limit - 0.5, width=32)) for limit in (width, height)]
    sides = [data.draw(st.floats(0.25, limit - at)) for limit, at in zip((width, height), low, strict=True)]
    box = np.array([[*low, *np.minimum(np.add(low, sides), (width, height))]], np.float32)
    frame, size = random_frame(height, width), tuple(int(np.ceil(side)) + 3 for side in sides[::-1])
    found = crops(frame, box, size, edge=edge, antialias=True)
    assert difference(found, crops(frame, box, size, edge=edge)) < FINE
    size, antialias = data.draw(st.tuples(st.integers(1, 33), st.integers(1, 70))), data.draw(st.booleans())
    options = BOXED | {"pad_value": 5, "edge": edge, "antialias": antialias}
    found, _ = crops(np.full_like(frame, 77), box, size, **options)
    at, inside = reference.place(box[0], size), np.zeros(size, bool)
    inside[at.top : at.top + at.height, at.left : at.left + at.width] = True
    assert np.abs(found[..., inside] - 77).max() < 1e-4 and (found[..., ~inside] == 5).all()


def test_results_of_uint8_round_half_to_even_and_saturate():
    frame, boxes = np.array([[[1], [2], [250]]], np.uint8), [[0, 0, 1, 1], [1, 0, 2, 1], [2, 0, 3, 1]]
    assert crops(frame, boxes, (1, 1), mean=-0.5, dtype="uint8").ravel().tolist() == [2, 2, 250]
    assert crops(frame, boxes, (1, 1), mean=100, std=0.5, dtype="uint8").ravel().tolist() == [0, 0, 255]
    board = np.where(random_frame(channels=1) > 127, 255, 0).astype(np.uint8)
    floats, found = (
        crops(board, [[3, 5, 40, 44]], (200, 200), filter="bicubic", dtype=dtype) for dtype in ("float32", "uint8")
    )
    assert floats.min() < -10 and floats.max() > 265 and np.array_equal(found, np.rint(floats).clip(0, 255))


def test_results_of_float16_round_as_numpy_does():
    """Every uint16 value through gains that reach normal, subnormal and overflowing results."""
    frame = np.arange(65536, dtype=np.uint16).reshape(256, 256, 1)
    for std in (1.0, 0.3, 7.0, 1e4, 1e9, 1e12):
        exact, half = (
            crops(frame, [[0, 0, 256, 256]], (256, 256), mean=20000.0, std=std, dtype=dtype)
            for dtype in ("float32", "float16")
        )
        with np.errstate(over="ignore"):
            assert np.array_equal(half, exact.astype(np.float16))


def test_values_of_float32_frames_overflow_saturate_and_may_be_no_numbers():
    frame = np.array([[[1e6], [-1e6], [300], [-3.0]]], np.float32)
    boxes = [[i, 0, i + 1, 1] for i in range(4)]
    assert crops(frame, boxes, (1, 1), dtype="float16").ravel().tolist() == [np.inf, -np.inf, 300, -3.0]
    assert crops(frame, boxes, (1, 1), dtype="uint8").ravel().tolist() == [255, 0, 255, 0]
    frame = np.zeros((40, 60, 1), np.float32)
    frame[20, 30] = np.nan  # reaches the samples that it has a part in
    for filter, side in (("nearest", 1), ("bilinear", 2), ("bicubic", 4)):
        assert np.isnan(crops(frame, [[[1, 0, 0.5], [0, 1, 0.5]]], (40, 60), filter=filter)).sum() == side * side


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("width", [1, 15, 33, 70])
def test_vectors_of_bytes_make_what_pixel_by_pixel_makes(filter, channels, width):
    """Frames of float32 go value by value: at the frame's last pixels, in rows of any length, in tiny boxes."""
    for height, across in ((4, 4), (40, 60)):
        frame, step = random_frame(height, across, channels), (across - 1) / max(width - 1, 1)
        boxes = np.array([[0, 0, across, height], [across / 2, height / 2, across, height],
                          [across - 1, height - 1, across, height], [1, 1, 2, 3]])  # fmt: skip
        # From the first pixel's centre to the last one's, half beyond, and the last row backwards.
        maps = np.float32([[[step, 0, 0], [0, 1, 0]], [[step, 0, across / 2], [0.1, 1, -2]],
                           [[-step, 0, across - 1], [0, 0, height - 1]]])  # fmt: skip
        for positions in (maps,) if filter == "bilinear" else (maps, boxes):
            for layout in ("NCHW", "NHWC"):
                options = {"filter": filter, "mean": 3.0, "std": 2.0, "layout": layout}
                found, right = (crops(f, positions, (9, width), **options) for f in (frame, frame.astype(np.float32)))
                assert difference(found, right) < 1e-3


@pytest.mark.parametrize("options", [{}, {"edge": "image"}, {"antialias": True}, BOXED, {"filter": "bicubic"}], ids=str)
def test_many_and_few_boxes_give_the_same_values(options):
    """Few boxes are cut into bands of rows, many are not; the answer must not depend on it."""
    for boxes in (np.tile([[3, 5, 40, 170]], (64, 1)), np.tile(MAPS[:1], (64, 1, 1)))[: 1 + ("filter" in options)]:
        many, one = (crops(FRAME, some, (223, 50), **options) for some in (boxes, boxes[:1]))
        if "letterbox" in options:
            many, one = many[0], one[0]
        assert np.array_equal(many, np.repeat(one, 64, axis=0))


@pytest.mark.parametrize("kind", [list, np.int32, np.int64, np.uint8, np.float32, np.float64, np.float16, ">f4"])
def test_boxes_maps_flips_and_an_index_may_be_of_any_numbers(kind):
    def of(values, order="C"):
        return values if kind is list else np.asarray(values, kind, order=order)

    frames, boxes, index = np.stack([FRAME, FRAME[::-1]]), [[1, 2, 30, 40], [5, 5, 6, 6]], [1, 0]
    right = crops(frames, np.array(boxes, np.int32), (9, 8), frame_index=index)
    number = index if np.dtype(float if kind is list else kind).kind == "f" else of(index)
    assert np.array_equal(crops(frames, of(boxes), (9, 8), frame_index=number), right)
    maps = np.array([[[1, 0, 20], [0, 1, 5]], [[0, 2, 3], [2, 0, 1]]])
    given_maps = maps.tolist() if kind is list else of(maps, "F")
    assert np.array_equal(crops(FRAME, given_maps, (9, 8)), crops(FRAME, maps, (9, 8)))
    flips = np.asarray([1, 0], bool if kind is np.uint8 else number.dtype if hasattr(number, "dtype") else int)
    for form in (flips, flips.astype(flips.dtype.newbyteorder())):
        assert np.array_equal(crops(FRAME, boxes, 8, flip=form), crops(FRAME, boxes, 8, flip=[1, 0]))


def test_no_boxes_give_an_empty_result_and_transform():
    assert crop_resize(FRAME, np.empty((0, 4)), device="cpu").shape == (0, 3, 224, 224)
    found, transform = crops(FRAME[None], np.empty((0, 4)), (8, 8), frame_index=[], **BOXED)
    assert found.shape == (0, 3, 8, 8) and transform.shape == (0, 4)
    nothing = np.empty((0, 3), np.float32)
    assert crops(FRAME, [], (8, 8), mean=nothing, std=nothing).shape == (0, 3, 8, 8)


def test_items_behind_the_count_are_left_alone_and_their_boxes_may_be_anything():
    boxes, out = np.array([*BOXES[:2], (np.nan, 0, 1, 1)]), np.full((3, 3, 8, 8), 7, np.float32)
    for count in (0, 2, np.int64(2), np.array([1], np.int32), np.array(2)):
        out[:] = 7
        assert crops(FRAME, boxes, (8, 8), count=count, out=out) is out
        made = int(np.squeeze(count))
        assert np.array_equal(out[:made], crops(FRAME, boxes[:made], (8, 8))) and (out[made:] == 7).all()


def test_a_plan_runs_many_times_in_the_same_memory():
    frames = np.stack([random_frame(60, 80, seed=seed) for seed in range(3)])
    options = BOXED | {"edge": "image", "antialias": True, "pad_value": 9, "device": "cpu"}
    plan = CropPlan(frames, 4, (8, 20), **options)
    boxes = np.array([[1, 2, 30, 40], [0, 0, 80, 60], [5, 5, 6, 6], [3, 2, 60, 50]])
    memory = plan.run(frames, boxes, frame_index=[0, 0, 0, 0])
    for index in ([0, 2], [1], [2, 2, 1, 0]):
        found = plan.run(frames, boxes[: len(index)], frame_index=index)
        once = crop_resize(frames, boxes[: len(index)], (8, 20), frame_index=index, **options)
        for array, right, held in zip(found, once, memory, strict=True):
            assert np.array_equal(array, right) and np.shares_memory(array, held)
    found = CropPlan(frames, 2, (8, 8), device="cpu").run(frames[:1], [[0, 0, 9, 9]], frame_index=[0])
    assert np.array_equal(found, crops(frames[0], [[0, 0, 9, 9]], (8, 8)))
    first = (plan := CropPlan(frames[0], 2, (8, 8), device="cpu")).run(frames[0], boxes[:2]).copy()
    second = plan.run(frames[0, :40], [[0, 0, 9, 9]])
    assert second.shape == (1, 3, 8, 8) and not np.array_equal(first[0], second[0])


def test_a_plan_takes_boxes_and_maps_and_means_at_every_run():
    plan = CropPlan(FRAME, 6, (20, 30), filter="bicubic", device="cpu")
    for boxes in (BOXES[:3], MAPS[:2], BOXES[2:5]):
        assert np.array_equal(plan.run(FRAME, boxes), crops(FRAME, boxes, (20, 30), filter="bicubic"))
    mean, std = np.arange(18.0).reshape(6, 3), np.arange(1.0, 19).reshape(6, 3)
    found = CropPlan(FRAME, 6, 8, scale=255, device="cpu").run(FRAME, BOXES[:6], mean=mean / 255, std=std / 255)
    assert np.allclose(found, crops(FRAME, BOXES[:6], 8, mean=mean, std=std), rtol=1e-4, atol=1e-4)
    with pytest.raises(InputError, match="others when the plan was made"):
        CropPlan(FRAME, 6, 8, mean=3, device="cpu").run(FRAME, BOXES[:6], mean=mean, std=std)


def test_maps_whose_samples_stay_inside_are_no_error():
    maps = [[[1, 0, 0], [0, 1, 0]], [[-300 / 8, 0, 300 - 0.5 - 300 / 16], [0, 25, 12]]]
    assert np.array_equal(crops(FRAME, maps, (8, 8), outside="error"), crops(FRAME, maps, (8, 8)))


@pytest.mark.parametrize("mode", PAD_MODES)
def test_corners_of_a_padded_box_lead_back_beyond_the_frame(mode):
    box = [[-40, -20, 60, 30]]
    for options, low in (({"outside": "pad", "pad_mode": mode}, [-40, -20]), ({}, [0, 0])):
        _, transform = crops(FRAME, box, (64, 64), **BOXED, **options)
        assert np.allclose(map_back([[[0, 16], [64, 48]]], transform), [[low, [60, 30]]])


def test_the_way_back_from_a_flipped_item():
    boxes, points, flips = np.array(BOXES[4:]), np.random.default_rng(0).random((4, 3, 2)) * (30, 20), np.arange(4)
    ways = [crops(FRAME, boxes, (20, 30), **BOXED, flip=flip)[1] for flip in (0, flips)]
    there = np.stack([np.where(flips[:, None] & bit, side - points[..., axis], points[..., axis])
                      for axis, (bit, side) in enumerate(((1, 30), (2, 20)))], axis=-1)  # fmt: skip
    np.testing.assert_allclose(map_back(there, ways[1]), map_back(points, ways[0]), rtol=1e-5, atol=1e-3)


@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.floats(width=32) | st.floats(-70, 70) | st.sampled_from([0.0, 60.0, 40.0, 20000.0])] * 4),
        min_size=1, max_size=3,
    ),
    frame=st.sampled_from([(60, 40), (60, 17000), (20000, 3)]),
    outside=st.sampled_from(["clip", "error", "pad"]),
)  # fmt: skip
@pytest.mark.filterwarnings("error", "ignore:all boxes lie between 0 and 1")  # a hint, once per process
def test_boxes_are_refused_by_the_rule_alone(rows, frame, outside):
    with np.errstate(over="ignore"):
        boxes = np.array(rows).astype(np.float32)
    wrong = [not usable(*np.float64(box), (*frame[::-1], 3), outside) for box in boxes]
    if any(wrong):
        words = rf"^box {wrong.index(True)} = .*; wrong boxes: {sum(wrong)} of {len(wrong)}, which"
        with pytest.raises(InputError, match=words):
            check_host_boxes(np.array(rows), *frame, outside)
    else:
        assert np.array_equal(check_host_boxes(np.array(rows), *frame, outside), boxes)


def test_a_wrong_answer_is_seen():
    """Of the comparison that all tables and random calls share."""
    options = BOXED | {"flip": np.arange(8) % 4}
    call = Crops(FRAME, np.float32(BOXES), (9, 8), options)
    found, way = crops(FRAME, BOXES, (9, 8), **options)
    assert call.check((found, way)) <= 1
    for item, row in ((found + 0.06, way), (found[::-1], way), (found, way + 0.01), (found[:, ::-1], way)):
        with pytest.raises(AssertionError):
            call.check((item, row))
