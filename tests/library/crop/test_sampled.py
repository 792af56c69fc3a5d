"""Filters and affine maps on the CPU: against OpenCV, Pillow, a model of detectron2, and the reference in float64."""

from __future__ import annotations

import cv2
import hypothesis.strategies as st
import numpy as np
import pytest
from gpu import PAD_MODES, random_frame
from hypothesis import given, settings
from PIL import Image
from sampled_case import (
    BEYOND,
    BOXES,
    FILTERS,
    MAPS,
    differences,
    of_boxes,
    of_maps,
    roi_align_rotated,
    ties,
)

from octopus import CropPlan, FrameStream, InputError, crop_resize, rotated_boxes
from octopus_study.reference import crops as reference

FINE = 0.02  # levels: a float32 position at 300 pixels is 3e-5 off, and pixels differ by up to 255
WHOLE = BOXES[:5].astype(int)
SIZES = [(32, 32), (7, 50), (224, 100), (1, 1)]
CV = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
BORDERS = {"constant": cv2.BORDER_CONSTANT, "edge": cv2.BORDER_REPLICATE, "reflect": cv2.BORDER_REFLECT_101}


@pytest.fixture(scope="module")
def frame():
    return random_frame(200, 300)


def crops(frame, boxes, size, **options):
    return crop_resize(frame, boxes, size, layout="NHWC", device="cpu", **options)


def of_reference(frame, boxes, size, *, mean=0.0, std=1.0, pad_value=114.0, **options):
    values = (np.broadcast_to(np.float64(value), frame.shape[-1]) for value in (mean, std, pad_value))
    mean, std, pad = values
    make = reference.warp if np.ndim(boxes) == 3 else reference.crop_resize
    return make(frame, boxes, size, mean, std, "NHWC", pad_value=pad, **options)


@pytest.mark.parametrize("size", SIZES)
def test_bicubic_is_that_of_opencv(frame, size):
    found = crops(frame, WHOLE, size, filter="bicubic")
    for item, (x1, y1, x2, y2) in zip(found, WHOLE, strict=True):
        right = cv2.resize(frame[y1:y2, x1:x2].astype(np.float32), size[::-1], interpolation=cv2.INTER_CUBIC)
        assert np.abs(item - right).max() < 5e-3


@pytest.mark.parametrize("size", [*SIZES, (200, 300), (100, 150), (64, 3)])
def test_nearest_is_that_of_opencv_and_pillow(frame, size):
    found = crops(frame, WHOLE, size, filter="nearest", dtype="uint8")
    for item, (x1, y1, x2, y2) in zip(found, WHOLE, strict=True):
        crop = np.ascontiguousarray(frame[y1:y2, x1:x2])
        box = np.array([(0, 0, x2 - x1, y2 - y1)])
        assert np.array_equal(item[None], of_reference(crop, box, size, filter="nearest"))
        # Both step by a rounded scale, and may take the pixel before where a sample lies on the edge of two.
        tied = ties(of_boxes(box, size)).any(axis=1)[0]
        for right in (
            cv2.resize(crop, size[::-1], interpolation=cv2.INTER_NEAREST_EXACT),
            np.asarray(Image.fromarray(crop).resize(size[::-1], Image.Resampling.NEAREST)),
        ):
            wrong = (item != right).any(axis=-1)
            assert not (wrong & ~tied).any() and wrong.mean() < 0.15


def test_a_sample_on_the_edge_of_two_pixels_takes_the_second():
    """At 3 / 14 of a pixel a rounded scale would put every seventh sample before the edge that it lies on."""
    frame = np.arange(3, dtype=np.uint8)[None, :, None].repeat(2, 0)
    for width in range(1, 200):
        right = (2 * np.arange(width) + 1) * 3 // (2 * width)
        assert np.array_equal(crops(frame, [[0, 0, 3, 2]], (1, width), filter="nearest")[0, 0, :, 0], right)


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("mode", PAD_MODES)
def test_maps_are_those_of_opencv(frame, filter, mode):
    """OpenCV 5 works in float32, as the library does; OpenCV 4 would be off by the levels of 1/64 pixel."""
    size, values = (61, 47), {"pad_value": 7} if mode == "constant" else {}
    options = {"outside": "pad", "pad_mode": mode, **values}
    found = crops(frame, MAPS, size, filter=filter, **options)
    right = np.stack([
        cv2.warpAffine(
            frame.astype(np.float32), map_, size[::-1], flags=CV[filter] | cv2.WARP_INVERSE_MAP,
            borderMode=BORDERS[mode], borderValue=(7, 7, 7),
        )
        for map_ in MAPS
    ])  # fmt: skip
    limit = 0.05 if int(cv2.__version__.split(".")[0]) >= 5 else 255 / 32
    assert differences(found, right, of_maps(MAPS, size), filter)[[0, 1, 2, 4, 5]].max() < limit


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("options", BEYOND, ids=str)
def test_maps_equal_the_reference(frame, filter, options):
    size = (31, 45)
    found = crops(frame, MAPS, size, filter=filter, mean=3.0, std=2.0, **options)
    right = of_reference(frame, np.float32(MAPS), size, filter=filter, mean=3.0, std=2.0, **options)
    found = differences(found, right, of_maps(MAPS, size), filter)
    assert found[[0, 1, 4]].max() < FINE
    assert found.max() < 0.15  # positions of up to 9000 pixels


@pytest.mark.parametrize("filter", ["nearest", "bicubic"])
@pytest.mark.parametrize("edge", ["box", "image"])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("options", BEYOND, ids=str)
def test_filters_with_every_option_equal_the_reference(frame, filter, edge, boxed, options):
    boxes = np.concatenate([BOXES, [(-20.3, -9, 60, 71), (250, 150, 340.25, 290)]]).astype(np.float32)
    options = {"edge": edge, "letterbox": boxed, "filter": filter, **options}
    size = (40, 56)
    found = crops(frame, boxes, size, **options)
    if boxed:
        found, transform = found
        inner = boxes if options["outside"] == "pad" else reference.cut(boxes, frame)
        assert np.allclose(transform, reference.transforms(inner, size), rtol=1e-5, atol=1e-3)
    right = of_reference(frame, boxes, size, **options)
    wrong = np.abs(found - right) > FINE
    assert wrong.mean() < (
        0.01 if filter == "nearest" else 1e-9
    )  # samples on edges may be decided either way


@settings(max_examples=80, deadline=None)
@given(
    numbers=st.lists(st.floats(-3, 3, width=32), min_size=4, max_size=4),
    shift=st.tuples(st.floats(-60, 90, width=32), st.floats(-60, 60, width=32)),
    size=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    sides=st.tuples(st.integers(1, 40), st.integers(1, 60)),
    filter=st.sampled_from(["bilinear", "bicubic"]),
    options=st.sampled_from(BEYOND),
)
def test_any_map_equals_the_reference(numbers, shift, size, sides, filter, options):
    a, b, d, e = numbers
    map_ = np.array([[[a, b, shift[0]], [d, e, shift[1]]]])
    frame = random_frame(*sides, seed=sides[0])
    found = crops(frame, map_, size, filter=filter, **options)
    assert np.abs(found - of_reference(frame, map_, size, filter=filter, **options)).max() < FINE


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 64])
@pytest.mark.parametrize("frame_dtype", ["uint8", "uint16", "float32"])
def test_every_kind_of_frame_and_result(filter, channels, frame_dtype):
    top = 255.0 if frame_dtype == "float32" else float(np.iinfo(frame_dtype).max)
    frames = np.random.default_rng(channels).uniform(0, top, (2, 40, 60, channels)).astype(frame_dtype)
    size, index, maps = (9, 11), [1, 0, 1], MAPS[:3] / [[[4, 4, 4]]]
    for boxes, positions in ((maps, of_maps(maps, size)), (BOXES[4:] / 4, of_boxes(BOXES[4:] / 4, size))):
        options = {"filter": filter, "mean": 3.0, "std": top / 128, "frame_index": index[: len(boxes)]}
        right = of_reference(
            frames, np.float32(boxes), size, **{**options, "frame_index": np.array(options["frame_index"])}
        )
        results = [("float32", "NHWC"), ("float16", "NCHW"), ("uint8", "NHWC"), ("uint8", "NCHW")]
        for dtype, layout in (
            results if frame_dtype == "uint8" else (("float32", "NHWC"), ("float32", "NCHW"))
        ):
            found = crop_resize(frames, boxes, size, dtype=dtype, layout=layout, device="cpu", **options)
            planes = found if layout == "NHWC" else found.transpose(0, 2, 3, 1)
            stored = right.clip(0, 255) if dtype == "uint8" else right
            limit = {"float32": 0, "float16": 0.07, "uint8": 0.5}[dtype] + FINE
            assert differences(planes, stored, positions, filter).max() <= limit


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("width", [1, 15, 33, 70])
def test_vectors_of_bytes_make_what_pixel_by_pixel_makes(filter, channels, width):
    """Frames of float32 take the simple road: at the frame's last pixels, in rows of any length, in tiny boxes."""
    for height, across in ((4, 4), (40, 60)):
        frame = random_frame(height, across, channels)
        ends = [across / 2, height / 2, across, height]
        boxes = np.array(
            [[0, 0, across, height], ends, [across - 1, height - 1, across, height], [1, 1, 2, 3]]
        )
        step = (across - 1) / max(width - 1, 1)
        # From the first pixel's centre to the last one's, half beyond, and the last row backwards.
        maps = [
            [[step, 0, 0], [0, 1, 0]],
            [[step, 0, across / 2], [0.1, 1, -2]],
            [[-step, 0, across - 1], [0, 0, height - 1]],
        ]
        kinds = [np.float32(maps)] if filter == "bilinear" else [np.float32(maps), boxes]
        for positions in kinds:
            for layout in ("NCHW", "NHWC"):
                options = {"filter": filter, "mean": 3.0, "std": 2.0, "layout": layout, "device": "cpu"}
                found, right = (
                    crop_resize(pixels, positions, (9, width), **options)
                    for pixels in (frame, frame.astype(np.float32))
                )
                assert np.abs(found - right).max() < 1e-3


def test_the_identity_gives_the_frame_and_a_shift_a_part_of_it(frame):
    identity = np.array([[[1, 0, 0], [0, 1, 0]], [[1, 0, 20], [0, 1, -5]], [[0, 1, 0], [1, 0, 0]]])
    for filter in FILTERS:
        found = crops(frame, identity, (200, 300), filter=filter, dtype="uint8")
        assert np.array_equal(found[0], frame)
        assert np.array_equal(found[1, 5:, :280], frame[:195, 20:])
        assert np.array_equal(found[1, :5, :280], np.repeat(frame[:1, 20:], 5, axis=0))
        assert np.array_equal(found[2, :200, :200], frame[:200, :200].transpose(1, 0, 2))


def test_a_box_as_a_map_is_that_box(frame):
    boxes, size = BOXES[[1, 5]], (40, 31)
    scale = (boxes[:, 2:] - boxes[:, :2]) / size[::-1]
    maps = np.zeros((2, 2, 3))
    maps[:, 0, 0], maps[:, 1, 1], maps[:, :, 2] = scale[:, 0], scale[:, 1], boxes[:, :2] + scale / 2 - 0.5
    for filter in FILTERS:
        found = crops(frame, maps, size, filter=filter)
        right = crops(frame, boxes, size, filter=filter, edge="image")
        assert differences(found, right, of_maps(maps, size), filter).max() < FINE


@pytest.mark.parametrize("size", [(14, 14), (5, 21)])
def test_rotated_boxes_are_those_of_detectron2(frame, size):
    boxes = [
        (100, 90, 60, 30, 0), (150.5, 100.25, 80, 41, 33), (120, 80, 50, 70, -127.5), (150, 100, 199, 120, 180),
        (60, 60, 40, 20, 90), (200, 120, 1, 1, 45),
    ]  # fmt: skip
    maps = rotated_boxes(boxes, size)
    assert maps.shape == (6, 2, 3) and maps.dtype == np.float32
    assert np.abs(crops(frame, maps, size) - roi_align_rotated(frame, boxes, size)).max() < FINE


def test_an_upright_rotated_box_is_a_box_and_turning_is_counter_clockwise(frame):
    maps = rotated_boxes([[50, 40, 20, 20, 0], [50, 40, 20, 20, 90]], 20)
    upright, turned = crops(frame, maps, 20)
    assert np.allclose(upright, frame[30:50, 40:60], atol=FINE)
    # The box's right side points up: its first row is the frame's column on the left, read from below.
    assert np.allclose(turned, np.rot90(frame[30:50, 40:60], -1), atol=FINE)


def test_rotated_boxes_stay_in_their_library():
    torch = pytest.importorskip("torch")
    boxes = [[50.0, 40, 20, 30, 25]]
    found = rotated_boxes(torch.tensor(boxes), (9, 7))
    assert isinstance(found, torch.Tensor) and found.dtype == torch.float32
    assert np.allclose(found.numpy(), rotated_boxes(boxes, (9, 7)), atol=1e-5)


def test_a_plan_takes_either_kind_of_boxes_at_every_run(frame):
    size = (20, 30)
    for shape in ((4,), (2, 3)):
        plan = CropPlan(frame, 6, size, filter="bicubic", box_shape=shape, device="cpu")
        for boxes in (BOXES, MAPS, BOXES[:2], MAPS[:0], MAPS):
            right = crop_resize(frame, boxes, size, filter="bicubic", device="cpu")
            assert np.array_equal(plan.run(frame, boxes), right)
    stream = FrameStream(frame, 6, size, filter="nearest", device="cpu")
    stream.buffer()[...] = frame
    assert np.array_equal(stream.submit(MAPS), crop_resize(frame, MAPS, size, filter="nearest", device="cpu"))


def test_many_and_few_maps_and_threads_give_the_same_values(frame):
    many = crops(frame, np.tile(MAPS[:1], (64, 1, 1)), (223, 50), filter="bicubic")
    one = crops(frame, MAPS[:1], (223, 50), filter="bicubic")
    assert np.array_equal(many, np.repeat(one, 64, axis=0))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64", "float16", ">f4"])
def test_maps_of_any_dtype_and_layout_in_memory(frame, dtype):
    maps = np.array([[[1, 0, 20], [0, 1, 5]], [[0, 2, 3], [2, 0, 1]]])
    right = crops(frame, maps, (9, 8))
    assert np.array_equal(crops(frame, np.asfortranarray(maps.astype(dtype)), (9, 8)), right)
    assert np.array_equal(crops(frame, maps.tolist(), (9, 8)), right)


def test_values_that_are_not_finite_reach_what_they_have_a_part_in():
    frame = np.zeros((40, 60, 1), np.float32)
    frame[20, 30] = np.nan
    identity = [[[1, 0, 0.5], [0, 1, 0.5]]]
    for filter, side in (("nearest", 1), ("bilinear", 2), ("bicubic", 4)):
        assert np.isnan(crops(frame, identity, (40, 60), filter=filter)).sum() == side * side


def test_bicubic_bytes_saturate(frame):
    board = np.where(random_frame(channels=1) > 127, 255, 0).astype(np.uint8)
    floats = crops(board, [[3, 5, 40, 44]], (200, 200), filter="bicubic")
    assert floats.min() < -10 and floats.max() > 265
    found = crops(board, [[3, 5, 40, 44]], (200, 200), filter="bicubic", dtype="uint8")
    assert np.array_equal(found, np.rint(floats).clip(0, 255))


MAP = [[1.0, 0, 3], [0, 1, 4]]


@pytest.mark.parametrize(
    ("boxes", "options", "words"),
    [
        ([MAP], {"letterbox": True}, "affine maps, which take no letterbox; found letterbox=True"),
        ([MAP], {"antialias": True}, "affine maps, which take no antialias"),
        ([MAP], {"edge": "image"}, "affine maps, which take no edge; found edge='image'"),
        (MAP, {}, r"found \(2, 3\); a single affine map is boxes\[None\]"),
        ([[[1, 0, 0]] * 3], {}, r"found \(1, 3, 3\); affine maps have \(N, 2, 3\)"),
        ([MAP, [[1, 0, np.nan], [0, 1, 4]]], {}, r"map 1 = \(1, 0, nan, 0, 1, 4\) is not a number.*maps: 1 of 2"),
        ([[[1, 0, 3], [0, np.inf, 4]]] * 2, {}, "map 0 = .* is not a number or infinite.*wrong maps: 2 of 2"),
        ([[[1, 0, 3], [0, 1e39, 4]]], {}, "map 0 = .* infinite as float32"),
        ([[[1, 0, 2**25], [0, 1, 4]]], {}, "map 0 = .* reaches further than 16777216 pixels"),
        ([[[2**23, 0, 0], [0, 1, 4]]], {}, "map 0 = .* reaches further than 16777216 pixels"),
        ([MAP, [[1, 0, -0.6], [0, 1, 4]]], {"outside": "error"}, "map 1 = .* outside the frame of 60x40 pixels"),
        ([[[1, 0, 3], [0, 5, 4.6]]], {"outside": "error"}, "map 0 = .* takes samples outside the frame"),
        ([[1, 2, 3, 4]], {"filter": "cubic"}, "filter='cubic' is unknown; use one of bilinear, nearest, bicubic"),
        ([[1, 2, 3, 4]], {"filter": "bicubic", "antialias": True}, "found filter='bicubic'; .*octopus.images.resize"),
        ([[1, 2, 3, 4]], {"filter": "nearest", "antialias": True}, "found filter='nearest'; .*octopus.images.resize"),
    ],
)  # fmt: skip
def test_what_cannot_be_sampled_is_refused(boxes, options, words):
    with pytest.raises(InputError, match=words):
        crop_resize(np.zeros((40, 60, 3), np.uint8), boxes, (8, 8), device="cpu", **options)


def test_maps_whose_samples_stay_inside_are_no_error(frame):
    maps = [[[1, 0, 0], [0, 1, 0]], [[-300 / 8, 0, 300 - 0.5 - 300 / 16], [0, 25, 12]]]
    assert np.array_equal(crops(frame, maps, (8, 8), outside="error"), crops(frame, maps, (8, 8)))


def test_a_plan_refuses_options_that_maps_do_not_take(frame):
    with pytest.raises(InputError, match="take no letterbox"):
        CropPlan(frame, 2, 8, letterbox=True, box_shape=(2, 3), device="cpu")
    with pytest.raises(InputError, match="take no letterbox"):
        CropPlan(frame, 2, 8, letterbox=True, device="cpu").run(frame, MAPS[:1])
    with pytest.raises(InputError, match=r"box_shape must be \(4,\)"):
        CropPlan(frame, 2, 8, box_shape=(6,), device="cpu")
