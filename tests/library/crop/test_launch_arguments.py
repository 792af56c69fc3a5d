"""What the driver is handed fits the kernel's arguments, for every set of options, without a GPU."""

from __future__ import annotations

from itertools import product

import numpy as np
import pretended_gpu
import pytest
from gpu import PAD_MODES, SETS, name_of
from pretended_gpu import OnGpu, memory

from octopus import NV12, CropPlan, InputError, crop_resize
from octopus.arrays.views import view
from octopus.crop.frame import frame_view

FRAME = np.zeros((40, 60, 3), np.uint8)
FRAMES = np.zeros((3, 50, 72, 3), np.uint8)[:, 5:45, 4:64]
BOX = np.array([1, 2, 9, 12])
ITEM_BYTES = 24 * 36 * 3 * 2
OPTIONS = {"size": (24, 36), "mean": 3.0, "std": 2.0, "dtype": "float16", "layout": "NHWC"}

pretended = pytest.fixture(pretended_gpu.installed)


def boxes_of(dtype, count=5):
    return np.tile(BOX, (count, 1)).astype(dtype)


@pytest.fixture
def launched(pretended):
    """A function that crops out of a frame on the GPU, and returns the last launch and addresses of what it is for."""

    def launched(frame, boxes=None, number=5, **options):
        boxes = OnGpu(boxes_of("int32", number)) if boxes is None else boxes
        there = OnGpu(frame) if isinstance(frame, np.ndarray) else frame
        made = crop_resize(there, boxes, **OPTIONS | options)
        out, transform = made if options.get("letterbox") else (made, None)
        launch = pretended.launches[-1]
        launch.out, launch.boxes, launch.transform = (
            getattr(a, "pointer", 0) for a in (out, boxes, transform)
        )
        return launch

    return launched


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_arguments_fit_the_kernel(launched, several, options):
    frame, index = (FRAMES, OnGpu(np.zeros(5, np.int64))) if several else (FRAME, None)
    padding = {"pad_value": 9.0} if options["letterbox"] else {}
    made = launched(frame, frame_index=index, **padding, **options)
    values = made.values
    assert values[:6] == (frame.ctypes.data, frame.strides[-3], 60, 40, made.boxes, made.out)
    assert values[6:8] == (36, 24)
    assert values[12:20] == (0.5, 0.5, 0.5, 0.0, -1.5, -1.5, -1.5, 0.0)
    rest = values[20:]
    assert bool(rest) == (several or options["letterbox"])
    if rest:
        assert rest[:4] == ((3, 50 * 72 * 3, index.pointer) if several else (1, 0, 0)) + (made.transform,)
        padded = 3.0 if options["letterbox"] else 55.5  # (9 - 3) / 2, or the default of 114
        assert rest[4:] == (padded, padded, padded, 0.0)
    assert ("int64" in made.kernel.name) == several


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_boxes_that_are_not_cut_take_the_plain_kernels(launched, mode, options):
    used = mode == "constant" or options["letterbox"]
    given, padded = ({"pad_value": 9.0}, 3.0) if used else ({}, 55.5)
    made = launched(FRAME, outside="pad", pad_mode=mode, **given, **options)
    assert f"-pad-{mode}-int32" in made.kernel.name and made.kernel.name.startswith("crop-")
    assert (made.grid, made.block) == ((5 * 2, 1, 1), (64, 1, 1))
    assert made.values[6:10] == (36, 24, 1, 2)
    assert made.values[18:] == (1, 0, 0, made.transform, padded, padded, padded, 0.0)


@pytest.mark.parametrize(
    ("width", "shift", "layout", "values"),
    [(36, 0, "NCHW", 2), (36, 1, "NCHW", 1), (35, 0, "NCHW", 1), (35, 1, "NHWC", 3)],
)
def test_under_a_filter_a_thread_makes_what_one_store_takes(launched, width, shift, layout, values):
    out = memory((5, 3, 24, width) if layout == "NCHW" else (5, 24, width, 3), np.uint8, shift)
    made = launched(FRAME, size=(24, width), layout=layout, dtype="uint8", antialias=True, out=OnGpu(out))
    name = made.kernel.name
    assert f"-by{values}-" in name and "antialias" in name and "words" in name
    assert made.block[0] == width // (values if layout == "NCHW" else 1)


@pytest.mark.parametrize("letterbox", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
def test_many_channels_are_normalised_by_numbers_in_memory(pretended, launched, antialias, letterbox):
    frame = np.zeros((40, 60, 5), np.uint16)
    padding, pads = ({"pad_value": (9, 9, 9, 9, 5)}, [3.0] * 4 + [1.0]) if letterbox else ({}, [55.5] * 5)
    made = launched(frame, antialias=antialias, letterbox=letterbox, **padding)
    ((there, nbytes, content),) = pretended.copies
    assert np.frombuffer(content, np.float32).tolist() == [*[0.5] * 5, *[-1.5] * 5, *pads]
    assert made.values[:6] == (frame.ctypes.data, 300, 60, 40, made.boxes, made.out)
    rest = (36, 24, 1, 2, there, there + 20, 1, 0, 0, made.transform, there + 40)
    assert made.values[6:] == rest and nbytes == 60
    assert made.kernel.name.startswith("crop-uint16x5-")


@pytest.mark.parametrize(("dtype", "channels"), [(np.float32, 3), (np.uint8, 2), (np.float32, 1)])
def test_other_frames_take_the_plain_kernel(launched, dtype, channels):
    frame, none = np.zeros((40, 60, channels), dtype), [0.0] * (4 - channels)
    made = launched(frame)
    assert made.kernel.name.startswith(f"crop-{frame.dtype}x{channels}-") and made.grid == (10, 1, 1)
    assert made.values[1] == 60 * channels
    assert made.values[10:] == (*[0.5] * channels, *none, *[-1.5] * channels, *none)


def test_boxes_that_are_cut_or_refused_take_the_same_kernel(launched):
    assert len({launched(FRAME, outside=outside).kernel.name for outside in ("clip", "error")}) == 1


def test_boxes_to_be_checked_are_read_back_but_not_into_a_graph(pretended, launched):
    boxes, queue = boxes_of("int64"), {"outside": "error", "stream": 5}
    launched(FRAME, OnGpu(boxes), **queue)
    boxes[3, 2] = 70
    with pytest.raises(InputError, match=r"box 3 = \(1, 2, 70, 12\) reaches outside"):
        launched(FRAME, OnGpu(boxes), **queue)
    pretended.captured.add(5)
    with pytest.raises(InputError, match=r'outside="error" reads the boxes.*graph.*ask for outside="clip"'):
        launched(FRAME, OnGpu(boxes), **queue)
    assert len(pretended.launches) == 1


def test_every_set_of_options_has_a_kernel_of_its_own(launched):
    index = {"frame_index": OnGpu(np.zeros(5, np.int32))}
    kinds = product(((FRAME, {}), (FRAMES, index)), SETS)
    assert len(
        {launched(frame, **more, **options).kernel.name for (frame, more), options in kinds}
    ) == 2 * len(SETS)


def test_words_are_read_where_rows_begin_at_words(launched):
    aligned = np.zeros((40, 61, 3), np.uint8)[:, :60]  # rows of 183 bytes
    shifted = np.zeros((40, 64, 3), np.uint8)[:, 1:61]
    whole = np.zeros((40, 64, 3), np.uint8)[:, 4:]
    names = [launched(frame, layout="NCHW").kernel.name for frame in (aligned, shifted, whole)]
    assert ["words" in name for name in names] == [False, False, True]


def test_wide_stores_need_a_good_width_and_address(launched):
    for width, shift, values in ((36, 0, 4), (36, 2, 1), (37, 0, 1)):
        out = OnGpu(memory((5, 3, 24, width), np.float16, shift))
        assert f"by{values}" in launched(FRAME, size=(24, width), layout="NCHW", out=out).kernel.name


def test_a_frame_of_one_column_gets_the_plain_kernel(launched):
    assert launched(np.zeros((40, 1, 3), np.uint8)).kernel.name.startswith("crop-")


def test_a_frame_is_prefetched_if_it_is_small_beside_the_result(launched):
    large = np.zeros((400, 600, 3), np.uint8)
    lines = [
        launched(frame, number=count).values[11] for frame, count in ((FRAME, 5), (large, 5), (large, 5000))
    ]
    assert lines == [FRAME.nbytes // 128, 0, large.nbytes // 128]


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("count", [1, 28, 240, 241])
def test_a_few_boxes_from_the_host_are_an_argument(pretended, launched, count, planned):
    boxes = boxes_of("float64", count) + np.arange(count)[:, None] / 16
    run = CropPlan(OnGpu(FRAME), 1000, **OPTIONS).run
    made = (run(OnGpu(FRAME), boxes) if planned else launched(FRAME, boxes)) and pretended.launches[-1]
    inside = count <= 240
    assert ("inside" in made.kernel.name) == inside and made.grid[1] == count
    content = made.content if inside else pretended.copies[0][2]
    assert content[: 16 * count] == boxes.astype(np.float32).tobytes()
    assert (made.values[4], len(pretended.copies)) == ((0, 0) if inside else (pretended.copies[0][0], 1))


def test_boxes_for_the_plain_kernel_are_no_argument(pretended, launched):
    made = launched(np.zeros((40, 1, 3), np.uint8), [[0, 2, 1, 12]])
    assert pretended.copies == [(made.values[4], 16, np.array([0, 2, 1, 12], np.float32).tobytes())]


def test_boxes_from_the_host_travel_in_parts_of_64_kib(pretended, launched):
    boxes = boxes_of("float32", 9000) + np.arange(9000, dtype=np.float32)[:, None] / 256
    first = launched(FRAME, boxes).out
    launches, copies = pretended.launches, pretended.copies
    assert [nbytes for _, nbytes, _ in copies] == [65536, 65536, 808 * 16]
    assert b"".join(content for *_, content in copies) == boxes.tobytes()
    assert [made.values[5] - first for made in launches] == [0, 4096 * ITEM_BYTES, 8192 * ITEM_BYTES]
    assert [(made.grid[1], made.values[4]) for made in launches] == [
        (n, copies[0][0]) for n in (4096, 4096, 808)
    ]


def test_maps_from_the_host_travel_in_parts_of_64_kib_to_a_kernel_of_their_own(pretended, launched):
    maps = np.arange(6 * 6000, dtype=np.float32).reshape(6000, 2, 3)
    first = launched(FRAME, maps).out
    launches, copies = pretended.launches, pretended.copies
    assert [nbytes for _, nbytes, _ in copies] == [65520, 65520, 540 * 24]
    assert b"".join(content for *_, content in copies) == maps.tobytes()
    assert [made.values[5] - first for made in launches] == [0, 2730 * ITEM_BYTES, 5460 * ITEM_BYTES]
    assert [made.grid[0] for made in launches] == [2730 * 2, 2730 * 2, 540 * 2]
    assert all(made.kernel.name.endswith("-bilinear-maps-float32") for made in launches)


def test_more_maps_than_a_launch_takes_are_cut_at_24_bytes(pretended, launched):
    made = launched(FRAME, OnGpu(np.zeros((70_000, 2, 3))), size=(2, 4))
    assert [made.values[4] for made in pretended.launches] == [made.boxes, made.boxes + 65535 * 48]


@pytest.mark.parametrize("filter", ["nearest", "bicubic"])
def test_filters_have_plain_kernels_of_their_own(pretended, launched, filter):
    options = {"letterbox": True, "edge": "image", "filter": filter}
    made = launched(FRAME, boxes_of("int32"), **options)
    assert made.content == b"" and made.values[4] == pretended.copies[0][0]
    index = OnGpu(np.zeros(5, np.int64))
    for frame, step, given in ((FRAME, (1, 0, 0), None), (FRAMES, (3, 50 * 72 * 3, index.pointer), index)):
        made = launched(frame, frame_index=given, **options)
        assert made.kernel.name.startswith("crop-") and f"-{filter}-int32" in made.kernel.name
        assert made.grid == (10, 1, 1) and made.values[6:10] == (36, 24, 1, 2)
        assert made.values[18:22] == (*step, made.transform)


def test_more_boxes_than_a_grid_holds_take_several_launches(pretended, launched):
    index = OnGpu(np.zeros(70_000, np.int64))
    made = launched(FRAMES, OnGpu(boxes_of("int64", 70_000)), size=(2, 4), frame_index=index)
    assert [one.grid[1] for one in pretended.launches] == [65535, 4465]
    assert [one.values[4] for one in pretended.launches] == [made.boxes, made.boxes + 65535 * 32]
    assert [one.values[22] for one in pretended.launches] == [index.pointer, index.pointer + 65535 * 8]


@pytest.mark.parametrize("channels, width", [(3, 60), (5, 60), (3, 1)])
def test_what_items_have_of_their_own_follows_the_options(launched, channels, width):
    frame, rows = np.zeros((40, width, channels), np.uint8), np.ones((5, channels), np.float32)
    count, flips = OnGpu(np.array(5, np.int32)), OnGpu(np.zeros((5, 2), np.int32)[:, 0])
    own = {"mean": OnGpu(rows), "std": OnGpu(rows.copy())}
    made = launched(frame, count=count, flip=flips, **own)
    assert made.kernel.name.endswith("counted-flipped-own")
    means, stds = (given.pointer for given in own.values())
    assert made.values[-15:] == (count.pointer, flips.pointer, 8, means, stds, 0, 0, *[0.0] * 8)
    plain = launched(frame)
    assert "counted" not in plain.kernel.name
    assert len(plain.values) == len(made.values) - 15 - (8 if channels < 5 else 0)


@pytest.mark.parametrize("antialias", [False, True])
def test_both_planes_of_video_are_arguments(launched, antialias):
    planes = np.zeros((64, 72), np.uint8)
    y, uv = OnGpu(planes[:40, :60]), OnGpu(planes[40:60, :60])
    video = NV12(y, uv, matrix="bt709", range="limited")
    made = launched(video, dtype="float32", antialias=antialias)
    values = made.values
    assert made.kernel.name.startswith("crop-nv12x3" if antialias else "stream-nv12x3")
    assert values[:4] == (y.pointer, 72, 60, 40) and values[-10:-8] == (uv.pointer, 72)
    assert values[-8:] == tuple(frame_view(video).coding.coefficients / np.float32(255))
    gains = values[12:15] if not antialias else values[10:13]
    assert gains == (127.5,) * 3  # of values from 0 to 1


def test_items_from_the_host_travel_with_their_boxes(pretended, launched):
    frame, count = np.zeros((40, 60, 40), np.uint8), 1000
    boxes, flips = (
        boxes_of("float32", count) + np.arange(count, dtype=np.float32)[:, None] / 64,
        np.arange(count) % 4,
    )
    rows = np.arange(40 * count, dtype=np.float32).reshape(count, 40) + 1
    launched(frame, boxes, flip=flips, mean=rows, std=rows)
    copies = pretended.copies[1:]  # behind gains, biases and padding
    assert [made.grid[0] for made in pretended.launches] == [409 * 2, 409 * 2, 182 * 2]
    there = [to for to, *_ in copies[:4]]
    for number, source in enumerate((flips.astype(np.uint8), rows, rows, boxes)):
        assert b"".join(content for *_, content in copies[number::4]) == source.tobytes()
    flips, means, stds, boxes = there
    assert all(made.values[-15:-8] == (0, flips, 1, means, stds, 0, 0) for made in pretended.launches)
    assert all(made.values[4] == boxes for made in pretended.launches)


def test_means_from_the_host_go_with_deviations_on_the_gpu(pretended, launched):
    rows = np.ones((5, 3), np.float32)
    made = launched(FRAME, mean=rows, std=OnGpu(rows))
    assert made.kernel.name.endswith("-own")
    assert made.values[-12:-10] == (pretended.copies[0][0], rows.ctypes.data)


def test_the_first_of_an_array_that_has_no_parts_lie_where_it_does():
    given = OnGpu(np.zeros((5, 4), np.float32))
    first = view(given, "boxes").head(2)
    assert (first.shape, first.pointer, first.owner) == ((2, 4), given.pointer, given)


def test_a_count_on_the_gpu_is_of_one_launch(pretended, launched):
    """That of a second part would count its items from 0 again."""
    given = {"flip": np.ones(5000, int), "count": OnGpu(np.array([4500]))}
    with pytest.raises(InputError, match=r"a count on the GPU.* is for up to 4096 boxes, found 5000"):
        launched(FRAME, OnGpu(boxes_of("float32", 5000)), **given)
    assert not pretended.launches
    made = launched(FRAME, OnGpu(boxes_of("float32", 4096)), **given | {"flip": np.ones(4096, int)})
    assert made.kernel.name.endswith("-counted-flipped")


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize(("count", "made"), [(2, 2), (0, 0), (-3, 0), (99, 5)])
def test_a_count_on_the_gpu_is_read_where_the_host_waits(pretended, staged, count, made):
    """Boxes behind it may be anything, and a result on the host keeps what it has there."""
    boxes, out = boxes_of("float32"), np.full((5, 3, 24, 36), 7, np.float32)
    boxes[max(made, 1) :] = np.nan
    given = {"size": (24, 36), "count": OnGpu(np.array(count)), "device": "cuda"}
    if staged:
        crop_resize(FRAME, OnGpu(boxes), out=out, **given)
        assert (out[:made] == 0).all() and (out[made:] == 7).all()  # the pretended GPU's memory holds zeros
    else:
        crop_resize(OnGpu(FRAME), OnGpu(boxes), out=OnGpu(out), outside="error", **given)
    assert [launch.grid[1] for launch in pretended.launches] == ([made] if made else [])
