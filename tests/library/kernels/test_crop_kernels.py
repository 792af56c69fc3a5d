"""The CUDA kernels of crops compile for every GPU that the artifact names, and as the design says; how work is cut."""

import re

import pytest
from cases.crops import PAD_MODES

from octopus.backends.cuda.compile import to_ptx
from octopus.backends.cuda.language import TAIL
from octopus.kernels.cuda import per_column, ptx, stream
from octopus.kernels.cuda.rows import Pixels, source_rows
from octopus.kernels.cuda.tiles import FIXED_SHAPES, MAX_ITEMS, MOST_BOXES_INSIDE, SHAPES, Shape, filter_shape, tiling

EVERY = {"edge": "image", "letterbox": True, "indexed": True}


@pytest.mark.parametrize(("frame", "channels", "dtype", "layout", "options"), [
    ("uint8", 3, "uint8", "NCHW", {"edge": "image"}), ("uint16", 1, "float32", "NCHW", {"antialias": True}),
    ("uint16", 4, "uint8", "NHWC", {}), ("uint8", 3, "float32", "NCHW", EVERY),
    ("uint8", 3, "float16", "NHWC", EVERY | {"antialias": True}),
    *(("uint8", 3, "float32", "NCHW", EVERY | {"pad_mode": mode, "antialias": mode != "constant"})
      for mode in PAD_MODES),
    ("float32", 3, "uint8", "NCHW", {}), ("float32", 1, "float16", "NCHW", {"pad_mode": "constant", "antialias": True}),
    ("uint8", 5, "uint8", "NCHW", {"letterbox": True, "antialias": True}),
    ("float32", 64, "float16", "NCHW", {"pad_mode": "reflect"}), ("nv12", 3, "uint8", "NCHW", {"filter": "bicubic"}),
    ("uint8", 3, "float32", "NCHW", {"filter": "bicubic", "maps": True, "pad_mode": "constant"}),
])  # fmt: skip
def test_kernels_with_a_column_per_thread_stay_in_registers(
    capability_in_turn, frame, channels, dtype, layout, options
):
    text = to_ptx(per_column.build(channels, dtype, layout, frame_dtype=frame, **options), capability_in_turn)
    assert f".target sm_{capability_in_turn[0]}{capability_in_turn[1]}" in text
    # The channel arrays must live in registers: local memory would go through the L1 cache.
    assert "local_depot" not in text
    assert len(re.findall(r"\bst\.global\.cs", text)) >= min(channels, 4)


STORES = {
    "float32": r"st\.global\.cs\.v2\.f32", "float16": r"st\.global\.cs\.v2\.b32", "uint8": r"st\.global\.cs\.b32",
}  # fmt: skip


# Each GPU once; float16 alone is made by other code on the oldest.
@pytest.mark.parametrize(("dtype", "capability"), [
    ("float16", (7, 5)), ("float32", (8, 7)), ("uint8", (8, 9)), ("float16", (9, 0)),
], indirect=["capability"])  # fmt: skip
def test_the_streaming_kernels_for_planar_results(capability, dtype):
    pairs = capability >= ptx.HALF_PAIR_CAPABILITY
    values = SHAPES[dtype, True].values
    kernel = stream.build(3, dtype, "NCHW", values=values, words=True, saturate=False, pairs=pairs)
    text = to_ptx(kernel, capability)
    assert "local_depot" not in text and "div.s64" not in text and "rem.s64" not in text  # 64-bit divisions are calls
    assert len(re.findall(STORES[dtype], text)) >= 3
    assert "ld.global.nc.u32" in text and "ld.global.nc.u8" not in text
    assert ("cvt.rn.f16x2.f32" in text) == (dtype == "float16" and pairs)


@pytest.mark.parametrize("pairs", [False, True])
def test_bfloat16_is_rounded_by_integers_where_the_gpu_has_no_instruction(capability_in_turn, pairs):
    kernel = stream.build(3, "bfloat16", "NCHW", values=4, words=True, pairs=pairs)
    text = to_ptx(kernel, capability_in_turn)
    assert ("cvt.rn.bf16x2.f32" in text, "testp.notanumber" in text) == (pairs, not pairs)


@pytest.mark.parametrize(("dtype", "planar", "options"), [
    (*key, ({}, {"letterbox": True, "indexed": True})[number % 2]) for number, key in enumerate(FIXED_SHAPES)
])  # fmt: skip
def test_the_streaming_kernels_in_fixed_point(capability_in_turn, dtype, planar, options):
    layout, values = "NCHW" if planar else "NHWC", FIXED_SHAPES[dtype, planar].values
    kernel = stream.build(3, dtype, layout, values=values, words=True, fixed=True, **options)
    text = to_ptx(kernel, capability_in_turn)
    assert "local_depot" not in text and "dp2a.lo.u32.u32" in text and "dp2a.hi.u32.u32" in text
    assert ("st.global.cs.v4.b32" in text) == (".minnctapersm 4" in text) == (layout == "NHWC")


@pytest.mark.parametrize(("layout", "options"), [("NCHW", {}), ("NHWC", {"letterbox": True, "indexed": True})])
def test_the_streaming_kernels_under_a_filter(capability_in_turn, layout, options):
    values = filter_shape(3, layout == "NCHW").values
    more = {"values": values, "words": True, "antialias": True, "saturate": False}
    text = to_ptx(stream.build(3, "uint8", layout, **more, **options), capability_in_turn)
    assert "local_depot" not in text and "rcp.approx" in text and re.search(r"\.shared .*\[\d+\]", text)
    assert ("st.global.cs.u16" in text) == (layout == "NCHW")


ITEMS = {"counted": True, "flipped": True, "own": True}


@pytest.mark.parametrize(("frame", "more"), [
    ("nv12", ITEMS), ("p010", {"letterbox": True}), ("uint8", ITEMS), ("uint8", {"order": "BGRA"}),
], ids=str)  # fmt: skip
def test_the_streaming_kernels_for_video_and_for_items(capability_in_turn, frame, more):
    video = frame != "uint8"
    kernel = stream.build(3, "float32", "NCHW", values=2, frame_dtype=frame, words=not video, **more)
    text = to_ptx(kernel, capability_in_turn)
    assert "local_depot" not in text and "st.global.cs.v2.f32" in text
    # A sample of luma by itself, and chroma in pairs; all colours are cut to their range by the last addition.
    loads = {"nv12": ("u8", "u16"), "p010": ("u16", "u32"), "uint8": ("u32",)}[frame]
    assert set(re.findall(r"ld\.global\.nc\.(\w+)", text)) == set(loads)
    assert ("fma.rn.sat.f32" in text) == video


def test_boxes_may_be_an_argument(capability_in_turn):
    kernel = stream.build(3, "float32", "NCHW", values=2, words=True, inside=True, letterbox=True)
    text = to_ptx(kernel, capability_in_turn)
    head, body = text.split("\n)\n", 1)
    assert re.search(rf",\s+\.param \.align 16 \.b8 {TAIL}\[{16 * MOST_BOXES_INSIDE}\]$", head)
    assert body.count("ld.param.v4.f32") == 1 and "local_depot" not in text
    # The pointer to boxes in memory isn't read: every driver takes 4 KiB of arguments.
    sizes = {"u64": 8, "s64": 8, "u32": 4, "f32": 4, "b64": 8, "b32": 4}
    rest = sum(sizes[kind] for kind in re.findall(r"\.param \.(\w\d\d) ", head))
    assert rest >= 80 and rest + 16 * MOST_BOXES_INSIDE <= 4096


@pytest.mark.parametrize(("channels", "layout", "options"), [
    (3, "NHWC", {"values": 4}),
    (3, "NCHW", {"indexed": True, "edge": "image"}), (1, "NCHW", {"frame_dtype": "uint16", "values": 2}),
    (4, "NCHW", {"values": 2, "words": True}),
], ids=str)  # fmt: skip
def test_other_streaming_kernels_stay_in_registers(capability_in_turn, channels, layout, options):
    assert "local_depot" not in to_ptx(stream.build(channels, "float32", layout, **options), capability_in_turn)


def test_what_no_kernel_can_be_is_refused():
    with pytest.raises(ValueError, match="uint8 frames of 3 or 4"):
        source_rows(Pixels(3, "uint8"), planar=False, values=4, words=True)


@pytest.mark.parametrize("items", [1, 28, 100, 1000, MAX_ITEMS])
@pytest.mark.parametrize("shape", [*SHAPES.values(), *FIXED_SHAPES.values()])
def test_bands_cover_every_row_once(items, shape):
    for height, row_values in ((224, 224), (1, 4), (37, 672), (500, 3000)):
        grid, block, rows = tiling(shape, items, height, row_values, 132)
        assert grid[0] * block[1] * rows >= height > (grid[0] - 1) * block[1] * rows
        assert grid[2] * block[0] * shape.values >= row_values
        assert grid[1] == items and block[0] * block[1] <= 512
    for size in (8, 32, 64, 96, 224):
        grid, block, rows = tiling(shape, 1000, size, size, 132)
        assert grid[0] > 1 or (block[1] - 1) * rows < size  # no band is without rows


def test_small_batches_get_shorter_bands():
    shape = Shape(2, 7, 256)
    rows = [tiling(shape, items, 224, 224, 132).rows for items in (1, 28, 1000)]
    assert rows == sorted(rows) and rows[0] < rows[-1] == 7
    assert tiling(shape, 1, 224, 224, 132).grid[0] >= 112  # nearly a block per multiprocessor, from a single crop
