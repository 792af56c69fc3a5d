"""What the CUDA engine hands to the driver fits the kernel's arguments, for every set of options, without a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from gpu import PAD_MODES, SETS, name_of
from numba import types

from octopus import NV12
from octopus.arrays import streams
from octopus.arrays.views import view
from octopus.backends.cuda import compile, device, memory
from octopus.backends.cuda.launch import ArgumentBlock
from octopus.crop import cuda, launch
from octopus.crop import kernel as crop_kernel
from octopus.crop.frame import frame_view
from octopus.crop.items import NONE, NOTHING, Items, on_host
from octopus.crop.kernel import CropKernel
from octopus.crop.options import CropOptions
from octopus.crop.spec import make_spec
from octopus.errors import InputError

FRAME = np.zeros((40, 60, 3), np.uint8)
FRAMES = np.zeros((3, 50, 72, 3), np.uint8)[:, 5:45, 4:64]
LETTERS = {"int32": "i", "int64": "q", "float32": "f"}
H200 = SimpleNamespace(multiprocessor_count=132, l2_cache_size=50 << 20)


@pytest.fixture
def submitted(monkeypatch):
    """Launches as (kernel's name and argument types, grid, block, arguments)."""
    calls = []

    def load(name, build):
        function, signature = build()
        assert function.__code__.co_argcount == len(signature)
        return SimpleNamespace(name=name, signature=signature)

    def submit(kernel, geometry, stream, arguments):
        calls.append((kernel, geometry[:3], geometry[3:], arguments.values()))
        letters = "".join(
            "Q" if isinstance(kind, types.CPointer) else LETTERS[kind.name] for kind in kernel.signature
        )
        assert letters == arguments.kinds

    device_memory = SimpleNamespace(pointer=4096, release_on=lambda stream: None)
    monkeypatch.setattr(compile, "load", load)
    monkeypatch.setattr(launch, "submit", submit)
    monkeypatch.setattr(launch, "function_of", lambda kernel: kernel)
    monkeypatch.setattr(memory, "DeviceArray", lambda *_, stream: device_memory)
    monkeypatch.setattr(
        memory,
        "copy",
        lambda to, source, nbytes, stream: calls.append(
            (to, source, nbytes, ctypes.string_at(source, nbytes))
        ),
    )
    monkeypatch.setattr(device, "is_capturing", lambda stream: False)
    monkeypatch.setattr(device, "current", lambda: SimpleNamespace(properties=H200))
    monkeypatch.setattr(device, "compute_capability", lambda: (9, 0))
    for kernels in (launch._stream_kernel, launch._plain_kernel):
        kernels.cache_clear()
    yield calls
    for kernels in (launch._stream_kernel, launch._plain_kernel):
        kernels.cache_clear()


def make_engine(frames, *, size=(24, 36), dtype="float16", layout="NHWC", boxes=5, **options):
    pixels = view(frames, "frame")
    spec = make_spec(pixels, CropOptions(size, 3.0, 2.0, dtype, layout, **options))
    return pixels, cuda.CudaEngine(spec, boxes, pixels, "float32", "int64", None)


def padding(options):
    return {"pad_value": 9.0} if options["letterbox"] else {}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_arguments_fit_the_kernel(submitted, several, options):
    pixels, engine = make_engine(FRAMES if several else FRAME, **padding(options), **options)
    engine.launch(pixels, 1, "int32", 5, 16, None, frame_index=3, index_dtype="int64", transform=4)
    kernel, _, _, values = submitted[0]
    assert values[:6] == (pixels.pointer, pixels.strides[-3], 60, 40, 1, 16)
    assert values[6:8] == (36, 24)
    assert values[12:20] == (0.5, 0.5, 0.5, 0.0, -1.5, -1.5, -1.5, 0.0)
    rest = values[20:]
    assert bool(rest) == (several or options["letterbox"])
    if rest:
        assert rest[:2] == ((3, 50 * 72 * 3) if several else (1, 0))
        assert rest[2:4] == (3, 4)
        padded = 3.0 if options["letterbox"] else 55.5  # (9 - 3) / 2, or the default of 114
        assert rest[4:] == (padded, padded, padded, 0.0)
    assert ("int64" in kernel.name) == several


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("options", SETS, ids=name_of)
def test_boxes_that_are_not_cut_take_the_plain_kernels(submitted, mode, options):
    used = mode == "constant" or options["letterbox"]
    given, padded = ({"pad_value": 9.0}, 3.0) if used else ({}, 55.5)
    pixels, engine = make_engine(FRAME, outside="pad", pad_mode=mode, **given, **options)
    engine.launch(pixels, 1, "int32", 5, 16, None, transform=4)
    kernel, grid, block, values = submitted[0]
    assert f"-pad-{mode}-int32" in kernel.name and kernel.name.startswith("crop-")
    assert (grid, block) == ((5 * 2, 1, 1), (64, 1, 1))
    assert values[6:10] == (36, 24, 1, 2)
    assert values[18:] == (1, 0, 0, 4, padded, padded, padded, 0.0)


@pytest.mark.parametrize(
    ("width", "out", "layout", "values"),
    [(36, 16, "NCHW", 2), (36, 17, "NCHW", 1), (35, 16, "NCHW", 1), (35, 17, "NHWC", 3)],
)
def test_under_a_filter_a_thread_makes_what_one_store_takes(submitted, width, out, layout, values):
    pixels, engine = make_engine(FRAME, size=(24, width), layout=layout, dtype="uint8", antialias=True)
    engine.launch(pixels, 1, "int32", 5, out, None)
    kernel, _, block, _ = submitted[0]
    assert f"-by{values}-" in kernel.name and "antialias" in kernel.name and "words" in kernel.name
    assert block[0] == width // (values if layout == "NCHW" else 1)


@pytest.mark.parametrize("letterbox", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
def test_many_channels_are_normalised_by_numbers_in_memory(submitted, antialias, letterbox):
    frame = np.zeros((40, 60, 5), np.uint16)
    options = {"antialias": antialias, "letterbox": letterbox}
    pads = [3.0, 3.0, 3.0, 3.0, 1.0] if letterbox else [55.5] * 5
    if letterbox:
        options["pad_value"] = (9, 9, 9, 9, 5)
    pixels, engine = make_engine(frame, **options)
    engine.launch(pixels, 1, "int32", 5, 16, None, transform=4)
    (to, _, nbytes, content), (kernel, _, _, values) = submitted
    assert (to, nbytes) == (4096, 60)
    assert np.frombuffer(content, np.float32).tolist() == [*[0.5] * 5, *[-1.5] * 5, *pads]
    assert values == (pixels.pointer, 300, 60, 40, 1, 16, 36, 24, 1, 2, 4096, 4116, 1, 0, 0, 4, 4136)
    assert kernel.name.startswith("crop-uint16x5-")


@pytest.mark.parametrize(("dtype", "channels"), [(np.float32, 3), (np.uint8, 2), (np.float32, 1)])
def test_other_frames_take_the_plain_kernel(submitted, dtype, channels):
    frame = np.zeros((40, 60, channels), dtype)
    kernel, grid, _, values = launched(submitted, frame)
    assert kernel.name.startswith(f"crop-{frame.dtype}x{channels}-") and grid == (10, 1, 1)
    assert values[1] == 60 * channels
    assert values[10:] == (
        *[0.5] * channels,
        *[0.0] * (4 - channels),
        *[-1.5] * channels,
        *[0.0] * (4 - channels),
    )


@pytest.mark.parametrize("outside", ["clip", "error"])
def test_boxes_that_are_cut_or_refused_take_the_same_kernel(submitted, outside):
    assert launched(submitted, FRAME, outside=outside)[0].name == launched(submitted, FRAME)[0].name


def test_boxes_to_be_checked_are_read_back_but_not_into_a_graph(submitted):
    stream = SimpleNamespace(sync=lambda: submitted.append("waited"))
    boxes = np.arange(8, dtype=np.int64).reshape(2, 4)
    _, engine = make_engine(FRAME, outside="error")
    engine._copy = lambda to, source, nbytes, queue: ctypes.memmove(to, source, nbytes)
    assert np.array_equal(engine.read_boxes(view(boxes, "boxes"), stream), boxes)
    assert submitted == ["waited"]
    engine._is_capturing = lambda queue: True
    with pytest.raises(InputError, match=r'outside="error" reads the boxes.*graph.*ask for outside="clip"'):
        engine.read_boxes(view(boxes, "boxes"), stream)


def test_every_set_of_options_has_a_kernel_of_its_own(submitted):
    names = set()
    for frames, options in product((FRAME, FRAMES), SETS):
        pixels, engine = make_engine(frames, **options)
        engine.launch(pixels, 1, "int32", 5, 16, None)
        names.add(submitted[-1][0].name)
    assert len(names) == 2 * len(SETS)


def launched(submitted, frames, out=4096, count=5, **options):
    pixels, engine = make_engine(frames, layout="NCHW", **options)
    engine.launch(pixels, 1, "float32", count, out, None)
    return submitted[-1]


def test_words_are_read_where_rows_begin_at_words(submitted):
    aligned = np.zeros((40, 61, 3), np.uint8)[:, :60]  # rows of 183 bytes
    assert "words" not in launched(submitted, aligned)[0].name
    shifted = np.zeros((40, 64, 3), np.uint8)[:, 1:61]
    assert "words" not in launched(submitted, shifted)[0].name
    whole = np.zeros((40, 64, 3), np.uint8)
    assert "words" in launched(submitted, whole[:, 4:])[0].name


def test_wide_stores_need_a_good_width_and_address(submitted):
    assert "by4" in launched(submitted, FRAME)[0].name
    assert "by1" in launched(submitted, FRAME, out=4098)[0].name
    assert "by1" in launched(submitted, FRAME, size=(24, 37))[0].name


def test_a_frame_of_one_column_gets_the_plain_kernel(submitted):
    assert launched(submitted, np.zeros((40, 1, 3), np.uint8))[0].name.startswith("crop-")


def test_a_frame_is_prefetched_if_it_is_small_beside_the_result(submitted):
    assert launched(submitted, FRAME, count=5)[3][11] == FRAME.nbytes // 128
    large = np.zeros((400, 600, 3), np.uint8)
    assert launched(submitted, large, count=5)[3][11] == 0
    assert launched(submitted, large, count=5000)[3][11] == large.nbytes // 128


@pytest.mark.parametrize("count", [1, 28, 240, 241])
def test_a_few_boxes_from_the_host_are_an_argument(submitted, count):
    pixels, engine = make_engine(FRAME, boxes=1000)
    boxes = np.arange(4 * count, dtype=np.float32).reshape(count, 4)
    room = engine.room(pixels, count)
    assert (room is None) == (count > 240)
    if room is None:
        return
    room.boxes[:] = boxes
    engine.run_uploading(pixels, room, NONE, NOTHING, 16, 0, None)
    ((kernel, grid, _, values),) = submitted  # no copy
    assert "inside" in kernel.name and grid[1] == count and values[4] == 0
    block = engine._launcher._blocks[False].arguments
    tail = (ctypes.c_uint64 * 21).from_address(block.address)[20]
    assert tail % 16 == 0 and tail == room.address
    assert ctypes.string_at(tail, boxes.nbytes) == boxes.tobytes()


def test_boxes_for_the_plain_kernel_are_no_argument(submitted):
    pixels, engine = make_engine(np.zeros((40, 1, 3), np.uint8))
    assert engine.room(pixels, 1) is None


def test_a_call_within_a_call_leaves_the_boxes_of_that_one_alone():
    """A signal's handler may crop, between the check of boxes among the arguments and their launch."""
    frame, boxes = view(FRAME, "frame"), view(np.array([[1, 2, 3, 4]], np.float32), "boxes")
    kernel, asked, launched = CropKernel(frame, CropOptions((8, 8)), 5, "cpu"), [], []

    def room(frame, count, items):
        asked.append(count)

    def enter(*_):
        if len(asked) == 1 and not launched:
            launched.append("inner begins")
            kernel.execute(frame, boxes, NONE, None, frame, None, None)

    kernel.device, kernel.memory = "cuda", SimpleNamespace(enter=enter)
    kernel.engine = SimpleNamespace(room=room, run_uploading=lambda *given: launched.append(type(given[1])))
    kernel.execute(frame, boxes, NONE, None, frame, None, None)
    assert asked == [1] and launched == ["inner begins", np.ndarray, np.ndarray]
    kernel.execute(frame, boxes, NONE, None, frame, None, None)
    assert asked == [1, 1]  # not for ever


@pytest.fixture
def kernel_of(submitted, monkeypatch):
    """A function that makes a kernel on a GPU that isn't there; `seen` has the runs that were looked at in full."""
    seen, here = [], SimpleNamespace(queue="a queue", gpu=0, capturing=False)

    def make(**options):
        frame = on_gpu(FRAME)
        kernel = CropKernel(view(FRAME, "frame"), CropOptions((24, 36), **options), 5, "cpu")
        _, kernel.engine = make_engine(FRAME, dtype="float32", layout="NCHW", **options)
        kernel.model, kernel.device = frame, "cuda"
        kernel.memory = SimpleNamespace(queue="a queue", enter=lambda *_: seen.append(None) or "a queue")
        return kernel

    monkeypatch.setattr(streams, "stream_for", lambda frame, boxes, stream: here.queue)
    monkeypatch.setattr(streams, "is_current_gpu", lambda ordinal: ordinal == here.gpu)
    monkeypatch.setattr(crop_kernel, "current", lambda: SimpleNamespace(device_id=0))
    monkeypatch.setattr(device, "is_capturing", lambda stream: here.capturing)
    return make, seen, here


def on_gpu(array, pointer=1 << 20, family="octopus"):
    return replace(view(array, "array"), pointer=pointer, device="cuda", family=family)


RESULT = np.empty((2, 3, 24, 36), np.float32)
BOXES = np.array([[1, 2, 9, 12], [3, 4, 30, 20]], np.int32)


def test_runs_that_look_alike_are_launched_and_no_more(submitted, kernel_of):
    make, seen, here = kernel_of
    kernel = make()

    def run(frame=1 << 20, boxes=1 << 21, out=1 << 22, given=BOXES, pixels=FRAME):
        before = len(seen)
        arrays = on_gpu(pixels, frame), on_gpu(given, boxes), on_gpu(RESULT, out)
        kernel.execute(arrays[0], arrays[1], NONE, None, arrays[2], None, None)
        values = submitted[-1][3]
        assert (values[0], *values[4:6]) == (frame, boxes, out)
        return len(seen) > before  # was it looked at in full?

    assert run()
    assert not run()
    assert not run(frame=1 << 23, boxes=1 << 24, out=1 << 25)
    first, last = submitted[0], submitted[-1]
    assert first[:3] == last[:3] and first[3][6:] == last[3][6:]
    for other in (
        {"out": (1 << 22) + 8},
        {"frame": (1 << 20) + 2},
        {"given": BOXES.astype(np.float32)},
        {"pixels": np.zeros((41, 60, 3), np.uint8)},
        {"pixels": np.zeros((40, 64, 3), np.uint8)[:, :60]},
    ):
        assert run(**other) and not run(**other)
    here.queue = "another"
    assert run()
    here.queue, here.gpu = "a queue", 1
    assert run()


def test_boxes_from_the_host_are_checked_in_runs_that_look_alike(submitted, kernel_of):
    make, seen, here = kernel_of
    kernel = make()

    def run(boxes):
        kernel.execute(on_gpu(FRAME), view(boxes, "boxes"), NONE, None, on_gpu(RESULT), None, None)
        tail = kernel.engine._launcher._blocks[False].arguments.tail
        return tail[: boxes.size].reshape(boxes.shape)

    assert np.array_equal(run(BOXES), BOXES)
    assert np.array_equal(run(BOXES + 1), BOXES + 1)
    assert len(seen) == 1 and len(submitted) == 2
    with pytest.raises(InputError, match=r"box 1 .* is empty"):
        run(BOXES * [[1], [0]])
    here.capturing = True
    with pytest.raises(InputError, match="graph is captured"):
        run(BOXES)
    here.capturing = False
    assert np.array_equal(run(BOXES), BOXES)
    assert len(seen) == 1 and len(submitted) == 3


def test_items_on_the_gpu_are_launched_and_no_more_too(submitted, kernel_of):
    make, seen, _ = kernel_of
    kernel, result = make(), on_gpu(RESULT)
    flips = np.zeros((2, 2), np.int32)

    def run(count, flip=1 << 26, column=flips[:, 0]):
        before = len(seen)
        given = Items(flip=on_gpu(column, flip), counted=on_gpu(np.array([2], np.int32), count))
        kernel.execute(on_gpu(FRAME), on_gpu(BOXES), given, None, result, None, None)
        values = submitted[-1][3][-15:]
        assert values[:3] == (count, flip, column.strides[0])
        return len(seen) > before

    assert run(1 << 24) and not run(1 << 24) and not run(1 << 25, 1 << 27)
    assert run(1 << 24, column=flips[0]) and not run(1 << 24, column=flips[0])
    kernel.execute(on_gpu(FRAME), on_gpu(BOXES), NONE, None, result, None, None)
    assert len(seen) == 3 and "flipped" not in submitted[-1][0].name
    there, here = on_gpu(np.zeros(2, np.int32)), view(np.zeros(2, np.int32), "flip")
    for flip in (there, here, here):  # from the host it is brought to the GPU every time
        kernel.execute(on_gpu(FRAME), on_gpu(BOXES), Items(flip=flip), None, result, None, None)
    assert len(seen) == 6


@pytest.mark.parametrize("why", ["read by the host", "of two libraries", "with a stream of their own"])
def test_runs_that_wait_are_looked_at_in_full_every_time(submitted, kernel_of, why):
    make, seen, _ = kernel_of
    kernel = make(outside="error" if why == "read by the host" else "clip")
    kernel.engine.read_boxes = lambda boxes, queue: BOXES
    boxes = on_gpu(BOXES, family="cupy" if why == "of two libraries" else "octopus")
    if why == "with a stream of their own":
        boxes.after = 7
    for _ in range(3):
        kernel.execute(on_gpu(FRAME), boxes, NONE, None, on_gpu(RESULT), None, None)
    assert len(seen) == len(submitted) == 3


def test_boxes_from_the_host_travel_in_parts_of_64_kib(submitted):
    boxes = np.arange(36_000, dtype=np.float32).reshape(9000, 4)
    pixels, engine = make_engine(FRAME, boxes=9000)
    assert engine.capacity == 4096
    engine.run_uploading(pixels, boxes, NONE, NOTHING, 16, 0, None)
    copies, launches = submitted[::2], submitted[1::2]
    assert [nbytes for _, _, nbytes, _ in copies] == [65536, 65536, 808 * 16]
    assert b"".join(content for *_, content in copies) == boxes.tobytes()
    assert not {source for _, source, _, _ in copies} & {boxes.ctypes.data + at for at in (0, 65536, 131072)}
    item = 24 * 36 * 3 * 2
    assert [values[5] for _, _, _, values in launches] == [16, 16 + 4096 * item, 16 + 8192 * item]
    assert [grid[1] for _, grid, _, _ in launches] == [4096, 4096, 808]


def test_maps_from_the_host_travel_in_parts_of_64_kib_to_a_kernel_of_their_own(submitted):
    maps = np.arange(6 * 6000, dtype=np.float32).reshape(6000, 2, 3)
    pixels, engine = make_engine(FRAME, boxes=9000)
    engine.run_uploading(pixels, maps, NONE, NOTHING, 16, 0, None)
    copies, launches = submitted[::2], submitted[1::2]
    assert [nbytes for _, _, nbytes, _ in copies] == [65520, 65520, 540 * 24]
    assert b"".join(content for *_, content in copies) == maps.tobytes()
    item = 24 * 36 * 3 * 2
    assert [values[4:6] for *_, values in launches] == [
        (4096, 16),
        (4096, 16 + 2730 * item),
        (4096, 16 + 5460 * item),
    ]
    assert [grid[0] for _, grid, _, _ in launches] == [2730 * 2, 2730 * 2, 540 * 2]
    assert all(kernel.name.endswith("-bilinear-maps-float32") for kernel, *_ in launches)


def test_more_maps_than_a_launch_takes_are_cut_at_24_bytes(submitted):
    pixels, engine = make_engine(FRAME, size=(2, 4), boxes=1)
    engine.launch(pixels, 64, "float64", 70_000, 4096, None, maps=True)
    assert [values[4] for *_, values in submitted] == [64, 64 + 65535 * 48]


@pytest.mark.parametrize("filter", ["nearest", "bicubic"])
@pytest.mark.parametrize("several", [False, True])
def test_filters_have_plain_kernels_of_their_own(submitted, filter, several):
    options = {"letterbox": True, "edge": "image", "filter": filter}
    pixels, engine = make_engine(FRAMES if several else FRAME, **options)
    assert engine.room(pixels, 1) is None
    engine.launch(pixels, 1, "int32", 5, 16, None, frame_index=3, index_dtype="int64", transform=4)
    kernel, grid, _, values = submitted[0]
    assert kernel.name.startswith("crop-") and f"-{filter}-int32" in kernel.name
    assert grid == (10, 1, 1) and values[6:10] == (36, 24, 1, 2)
    assert values[18:22] == ((3, 50 * 72 * 3, 3, 4) if several else (1, 0, 3, 4))


def test_more_boxes_than_a_grid_holds_take_several_launches(submitted):
    pixels, engine = make_engine(FRAMES, size=(2, 4), boxes=1)
    engine.launch(pixels, 64, "int64", 70_000, 4096, None, frame_index=8, index_dtype="int64")
    grids, values = zip(*[(grid, values) for _, grid, _, values in submitted], strict=True)
    assert [grid[1] for grid in grids] == [65535, 4465]
    assert [v[4] for v in values] == [64, 64 + 65535 * 32]
    assert [v[22] for v in values] == [8, 8 + 65535 * 8]


ITEMS = launch.ItemPointers(counted=32, flips=64, flip_step=8, means=96, stds=128)


@pytest.mark.parametrize("frame", [FRAME, np.zeros((40, 60, 5), np.uint8), np.zeros((40, 1, 3), np.uint8)])
def test_what_items_have_of_their_own_follows_the_options(submitted, frame):
    pixels, engine = make_engine(frame)
    engine.launch(pixels, 1, "int32", 5, 16, None, items=ITEMS)
    kernel, _, _, values = submitted[-1]
    assert kernel.name.endswith("counted-flipped-own")
    assert values[-15:] == (32, 64, 8, 96, 128, 0, 0, *[0.0] * 8)
    engine.launch(pixels, 1, "int32", 5, 16, None)
    assert "counted" not in submitted[-1][0].name and len(submitted[-1][3]) == len(values) - 15 - (
        8 if frame.shape[2] < 5 else 0
    )


@pytest.mark.parametrize("antialias", [False, True])
def test_both_planes_of_video_are_arguments(submitted, antialias):
    planes = np.zeros((64, 72), np.uint8)
    video = NV12(planes[:40, :60], planes[40:60, :60], matrix="bt709", range="limited")
    pixels = frame_view(video)
    spec = make_spec(pixels, CropOptions((24, 36), 3.0, 2.0, antialias=antialias))
    cuda.CudaEngine(spec, 5, pixels, "float32", "int64", None).launch(pixels, 1, "int32", 5, 16, None)
    kernel, _, _, values = submitted[0]
    assert kernel.name.startswith("crop-nv12x3" if antialias else "stream-nv12x3")
    assert values[:4] == (planes.ctypes.data, 72, 60, 40)
    assert values[-10:-8] == (planes.ctypes.data + 40 * 72, 72)
    assert values[-8:] == tuple(pixels.coding.coefficients / np.float32(255))
    gains = values[12:15] if not antialias else values[10:13]
    assert gains == (127.5,) * 3  # of values from 0 to 1


def test_items_from_the_host_travel_with_their_boxes(submitted):
    frame, count = np.zeros((40, 60, 40), np.uint8), 1000
    boxes = np.arange(4 * count, dtype=np.float32).reshape(count, 4)
    rows = view(np.arange(40 * count, dtype=np.float32).reshape(count, 40) + 1, "mean")
    items = Items(flip=view(np.arange(count) % 4, "flip"), mean=rows, std=rows)
    pixels, engine = make_engine(frame, boxes=count)
    del submitted[:]
    engine.run_uploading(pixels, boxes, items, on_host(items, 1), 16, 0, None)
    parts = [
        submitted[first : first + 5] for first in range(0, len(submitted), 5)
    ]  # four copies and a launch
    assert len(parts) == 3 and [part[-1][1][0] for part in parts] == [409 * 2, 409 * 2, 182 * 2]
    sources = (np.arange(count) % 4).astype(np.uint8), rows.numpy(), rows.numpy(), boxes
    for number, source in enumerate(sources):
        assert b"".join(part[number][3] for part in parts) == source.tobytes()
    assert all(part[-1][3][-15:-8] == (0, 4096, 1, 4096, 4096, 0, 0) for part in parts)


def test_arguments_lie_as_c_would_lay_them():
    block = ArgumentBlock("QiiiQf")
    block.writer(0, 6)(2**63, 1, 2, 3, 7, 0.5)
    assert block.values() == (2**63, 1, 2, 3, 7, 0.5)
    addresses = np.frombuffer((np.ctypeslib.ctypes.c_uint64 * 6).from_address(block.address), np.uint64)
    assert (addresses - addresses[0]).tolist() == [0, 8, 12, 16, 24, 32]


class OnGpu:
    """An array of which nothing can be asked but where it lies; its memory is the host's."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return {**self.array.__array_interface__, "version": 3}


def test_means_from_the_host_go_with_deviations_on_the_gpu(submitted):
    rows = np.ones((5, 3), np.float32)
    items = Items(mean=view(rows, "mean"), std=view(OnGpu(rows), "std"))
    pixels, engine = make_engine(FRAME)
    boxes = view(OnGpu(np.zeros((5, 4), np.float32)), "boxes")
    engine.run_uploading(pixels, boxes, items, on_host(items, 1), 16, 0, None)
    kernel, _, _, values = submitted[-1]
    assert kernel.name.endswith("-own") and values[-12:-10] == (4096, rows.ctypes.data)


def test_the_first_of_an_array_that_has_no_parts_lie_where_it_does():
    given = OnGpu(np.zeros((5, 4), np.float32))
    first = view(given, "boxes").head(2)
    assert (first.shape, first.pointer, first.owner) == ((2, 4), given.array.ctypes.data, given)


def test_a_count_on_the_gpu_is_of_one_launch(submitted):
    """That of a second part would count its items from 0 again."""
    boxes, flips = view(OnGpu(np.zeros((5000, 4), np.float32)), "boxes"), view(np.ones(5000, int), "flip")
    items = Items(flip=flips, counted=view(OnGpu(np.array([4500])), "count"))
    pixels, engine = make_engine(FRAME, boxes=5000)
    with pytest.raises(InputError, match=r"a count on the GPU.* is for up to 4096 boxes, found 5000"):
        engine.run_uploading(pixels, boxes, items, on_host(items, 1), 16, 0, None)
    assert not submitted
    engine.run_uploading(
        pixels, boxes.head(4096), items.head(4096), on_host(items.head(4096), 1), 16, 0, None
    )
    assert submitted[-1][0].name.endswith("-counted-flipped")


@pytest.mark.parametrize(("stage", "outside"), [(True, "clip"), (False, "error")])
@pytest.mark.parametrize(("count", "made"), [(2, 2), (0, 0), (-3, 0), (99, 5)])
def test_a_count_on_the_gpu_is_read_where_the_host_waits(submitted, stage, outside, count, made):
    """Boxes behind it may be anything, and a result on the host keeps what it has there."""
    boxes = np.full((5, 4), np.nan, np.float32)
    boxes[: max(made, 1)] = 1, 2, 3, 4
    kernel = CropKernel(view(FRAME, "frame"), CropOptions((24, 36), outside=outside), 5, "cpu")
    _, kernel.engine = make_engine(FRAME, dtype="float32", layout="NCHW", outside=outside)
    kernel.engine._copy = lambda to, source, nbytes, queue: ctypes.memmove(to, source, nbytes)
    kernel.device, brought = "cuda", []
    kernel.memory = SimpleNamespace(enter=lambda *_: SimpleNamespace(sync=lambda: None))
    if stage:

        def run(frame, results, queue, submit):
            brought.extend(result.shape[0] for result in results if result is not None)
            submit(4096, 4096, 0)

        kernel.stage = SimpleNamespace(run=run)
    out = view(np.empty((5, 3, 24, 36), np.float32), "out")
    items = Items(counted=view(OnGpu(np.array(count)), "count"))
    kernel.execute(view(FRAME, "frame"), view(OnGpu(boxes), "boxes"), items, None, out, None, None)
    assert brought == ([made] if stage and made else [])
    assert [grid[1] for _, grid, _, _ in submitted] == ([made] if made else [])
