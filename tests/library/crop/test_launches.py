"""What the driver is asked to launch and to copy for a crop, on a pretended GPU; values are those of `cases`."""

import numpy as np
import pytest
from pretended import OnGpu, memory

from octopus import CropPlan, InputError, crop_resize

FRAME = np.zeros((40, 60, 3), np.uint8)
FRAMES = np.zeros((3, 50, 72, 3), np.uint8)[:, 5:45, 4:64]
BOX = np.array([1, 2, 9, 12])
ITEM_BYTES = 24 * 36 * 3 * 2
OPTIONS = {"size": (24, 36), "mean": 3.0, "std": 2.0, "dtype": "float16", "layout": "NHWC"}


def boxes_of(dtype, count=5):
    return np.tile(BOX, (count, 1)).astype(dtype)


@pytest.fixture
def launched(gpu):
    """A function that crops out of a frame on the GPU, and returns the last launch with the addresses of its arrays."""

    def launched(frame, boxes=None, number=5, **options):
        boxes = OnGpu(boxes_of("int32", number)) if boxes is None else boxes
        made = crop_resize(OnGpu(frame), boxes, **OPTIONS | options)
        launch = gpu.launches[-1]
        launch.out = (made[0] if options.get("letterbox") else made).pointer
        return launch

    return launched


@pytest.mark.parametrize(("width", "shift", "layout", "values"), [
    (36, 0, "NCHW", 2), (36, 1, "NCHW", 1), (35, 0, "NCHW", 1), (35, 1, "NHWC", 3),
])  # fmt: skip
def test_under_a_filter_a_thread_makes_what_one_store_takes(launched, width, shift, layout, values):
    out = memory((5, 3, 24, width) if layout == "NCHW" else (5, 24, width, 3), np.uint8, shift)
    made = launched(FRAME, size=(24, width), layout=layout, dtype="uint8", antialias=True, out=OnGpu(out))
    assert f"-by{values}-" in made.kernel.name and made.block[0] == width // (values if layout == "NCHW" else 1)


def test_words_are_read_where_rows_begin_at_words(launched):
    aligned = np.zeros((40, 61, 3), np.uint8)[:, :60]  # rows of 183 bytes
    wide = np.zeros((40, 66, 3), np.uint8)[:, :64]
    frames = aligned, *(np.zeros((40, 64, 3), np.uint8)[:, first : first + 60] for first in (1, 2, 4)), wide
    names = [launched(frame, layout="NCHW").kernel.name for frame in frames]
    assert ["words" in name for name in names] == [False, False, False, True, False]


def test_wide_stores_need_a_good_width_and_address(launched):
    for width, shift, values in ((36, 0, 4), (36, 2, 1), (37, 0, 1)):
        out = OnGpu(memory((5, 3, 24, width), np.float16, shift))
        assert f"by{values}" in launched(FRAME, size=(24, width), layout="NCHW", out=out).kernel.name


def test_a_frame_is_prefetched_if_it_is_small_beside_the_result(launched):
    large = np.zeros((400, 600, 3), np.uint8)
    lines = [launched(frame, number=count).values[11] for frame, count in ((FRAME, 5), (large, 5), (large, 5000))]
    assert lines == [FRAME.nbytes // 128, 0, large.nbytes // 128]


def test_what_the_streaming_kernel_cannot_do_takes_one_with_a_column_per_thread(launched):
    for frame, options in (
        (np.zeros((40, 1, 3), np.uint8), {}), (np.zeros((40, 60, 3), np.float32), {}),
        (np.zeros((40, 60, 5), np.uint8), {}), (FRAME, {"outside": "pad"}), (FRAME, {"filter": "nearest"}),
    ):  # fmt: skip
        made = launched(frame, **options)
        assert made.kernel.name.startswith("crop-") and (made.grid, made.block) == ((5 * 2, 1, 1), (64, 1, 1))


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("count", [1, 28, 240, 241])
def test_a_few_boxes_from_the_host_are_an_argument(gpu, launched, count, planned):
    boxes = boxes_of("float64", count) + np.arange(count)[:, None] / 16
    run = CropPlan(OnGpu(FRAME), 1000, **OPTIONS).run
    made = (run(OnGpu(FRAME), boxes) if planned else launched(FRAME, boxes)) and gpu.launches[-1]
    content = made.content if count <= 240 else gpu.copies[0][2]
    assert content[: 16 * count] == boxes.astype(np.float32).tobytes()
    assert (made.values[4], len(gpu.copies)) == ((0, 0) if count <= 240 else (gpu.copies[0][0], 1))


@pytest.mark.parametrize(("boxes", "each"), [
    (boxes_of("float32", 9000) + np.arange(9000, dtype=np.float32)[:, None] / 256, 4096),
    (np.arange(6 * 6000, dtype=np.float32).reshape(6000, 2, 3), 2730),
], ids=["boxes", "maps"])  # fmt: skip
def test_boxes_from_the_host_travel_in_parts_of_64_kib(gpu, launched, boxes, each):
    first, starts = launched(FRAME, boxes).out, [0, each, 2 * each]
    counts = [each, each, len(boxes) - 2 * each]
    assert [nbytes for _, nbytes, _ in gpu.copies] == [count * boxes[0].nbytes for count in counts]
    assert b"".join(content for *_, content in gpu.copies) == boxes.tobytes()
    assert [made.values[5] - first for made in gpu.launches] == [start * ITEM_BYTES for start in starts]
    blocks = [made.grid[1] if boxes.ndim == 2 else made.grid[0] // 2 for made in gpu.launches]
    assert blocks == counts and {made.values[4] for made in gpu.launches} == {gpu.copies[0][0]}


def test_more_boxes_than_a_grid_holds_take_several_launches(gpu, launched):
    index, boxes = OnGpu(np.zeros(70_000, np.int64)), OnGpu(boxes_of("int64", 70_000))
    launched(FRAMES, boxes, size=(2, 4), frame_index=index)
    assert [one.grid[1] for one in gpu.launches] == [65535, 4465]
    assert [one.values[4] for one in gpu.launches] == [boxes.pointer, boxes.pointer + 65535 * 32]
    assert [one.values[22] for one in gpu.launches] == [index.pointer, index.pointer + 65535 * 8]
    del gpu.launches[:]
    maps = OnGpu(np.zeros((70_000, 2, 3)))
    launched(FRAME, maps, size=(2, 4))
    assert [made.values[4] for made in gpu.launches] == [maps.pointer, maps.pointer + 65535 * 48]


def test_items_from_the_host_travel_with_their_boxes(gpu, launched):
    frame, count = np.zeros((40, 60, 40), np.uint8), 1000
    boxes = boxes_of("float32", count) + np.arange(count, dtype=np.float32)[:, None] / 64
    flips, rows = np.arange(count) % 4, np.arange(40 * count, dtype=np.float32).reshape(count, 40) + 1
    launched(frame, boxes, flip=flips, mean=rows, std=rows)
    copies = gpu.copies[1:]  # behind gains, biases and padding
    assert [made.grid[0] for made in gpu.launches] == [409 * 2, 409 * 2, 182 * 2]
    for number, source in enumerate((flips.astype(np.uint8), rows, rows, boxes)):
        assert b"".join(content for *_, content in copies[number::4]) == source.tobytes()


def test_boxes_to_be_checked_are_read_back_but_not_into_a_graph(gpu, launched):
    boxes, queue = boxes_of("int64"), {"outside": "error", "stream": 5}
    launched(FRAME, OnGpu(boxes), **queue)
    boxes[3, 2] = 70
    with pytest.raises(InputError, match=r"box 3 = \(1, 2, 70, 12\) reaches outside"):
        launched(FRAME, OnGpu(boxes), **queue)
    gpu.captured.add(5)
    with pytest.raises(InputError, match=r'outside="error" reads the boxes.*graph.*ask for outside="clip"'):
        launched(FRAME, OnGpu(boxes), **queue)
    assert len(gpu.launches) == 1


def test_a_count_on_the_gpu_is_of_one_launch(gpu, launched):
    """That of a second part would count its items from 0 again."""
    given = {"flip": np.ones(5000, int), "count": OnGpu(np.array([4500]))}
    with pytest.raises(InputError, match=r"a count on the GPU.* is for up to 4096 boxes, found 5000"):
        launched(FRAME, OnGpu(boxes_of("float32", 5000)), **given)
    assert not gpu.launches
    launched(FRAME, OnGpu(boxes_of("float32", 4096)), **given | {"flip": np.ones(4096, int)})
    assert len(gpu.launches) == 1


@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize(("count", "made"), [(2, 2), (0, 0), (-3, 0), (99, 5)])
def test_a_count_on_the_gpu_is_read_where_the_host_waits(gpu, staged, count, made):
    """Boxes behind it may be anything, and a result on the host keeps what it has there."""
    boxes, out = boxes_of("float32"), np.full((5, 3, 24, 36), 7, np.float32)
    boxes[max(made, 1) :] = np.nan
    given = {"size": (24, 36), "count": OnGpu(np.array(count)), "device": "cuda"}
    if staged:
        crop_resize(FRAME, OnGpu(boxes), out=out, **given)
        assert (out[:made] == 0).all() and (out[made:] == 7).all()  # the pretended GPU's memory holds zeros
    else:
        crop_resize(OnGpu(FRAME), OnGpu(boxes), out=OnGpu(out), outside="error", **given)
    assert [launch.grid[1] for launch in gpu.launches] == ([made] if made else [])
