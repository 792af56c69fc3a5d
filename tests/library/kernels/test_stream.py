"""The streaming kernel without a GPU: its answers in Numba's simulator, and its PTX for every GPU named."""

from __future__ import annotations

import re

import pytest

from octopus.backends.cuda.compile import to_ptx
from octopus.backends.cuda.launch import TAIL
from octopus.kernels.cuda import ptx, stream
from octopus.kernels.cuda.rows import Pixels, source_rows
from octopus.kernels.cuda.tiles import (
    FIXED_SHAPES,
    MAX_ITEMS,
    MOST_BOXES_INSIDE,
    SHAPES,
    Shape,
    filter_shape,
    tiling,
)

SCRIPT = "simulate_stream.py"
LIMITS = {"float16": 0.07, "bfloat16": 0.5, "uint8": 0.5 + 1e-3, "uint16-frame": 0.3}
LIMITS |= {f"antialias-{name}": limit for name, limit in LIMITS.items()}
FIXED_LIMITS = {"float16": 0.07, "bfloat16": 0.5, "uint8": 0.5 + 0.005}


def test_every_kind_of_kernel_gives_the_answer_of_the_reference(answers):
    assert len(answers) > 20
    wrong = {
        name: value
        for name, value in answers.items()
        if not name.startswith(("bad", "fixed")) and not value <= LIMITS.get(name, 1e-3)
    }
    assert not wrong


def test_fixed_point_is_as_exact_as_its_weights(answers):
    """A weight is at most 1 / 65536 off; float16 values of up to 122.5 have steps of 1 / 16."""
    found = {name: value for name, value in answers.items() if name.startswith("fixed")}
    assert len(found) == 15
    assert not {name: value for name, value in found.items() if not value <= FIXED_LIMITS[name.split("-")[1]]}


def test_what_cannot_be_made_fills_its_item(answers):
    found = {name: value for name, value in answers.items() if name.startswith("bad")}
    assert len(found) == 8 and set(found.values()) == {1.0}


STORES = {
    "float32": r"st\.global\.cs\.v2\.f32",
    "float16": r"st\.global\.cs\.v2\.b32",
    "uint8": r"st\.global\.cs\.b32",
}


# Each GPU once; float16 alone is made by other code on the oldest.
@pytest.mark.parametrize(
    ("dtype", "capability"),
    [("float16", (7, 5)), ("float32", (8, 7)), ("uint8", (8, 9)), ("float16", (9, 0))],
    indirect=["capability"],
)
def test_the_kernels_for_planar_results(capability, dtype):
    values = SHAPES[dtype, True].values
    pairs = capability >= ptx.HALF_PAIR_CAPABILITY
    kernel = stream.build(3, dtype, "NCHW", values=values, words=True, saturate=False, pairs=pairs)
    text = to_ptx(kernel, stream.argument_types("uint8", "float32", dtype), capability)
    assert f".target sm_{capability[0]}{capability[1]}" in text
    # Local memory would go through the L1 cache, and 64-bit divisions are calls.
    assert "local_depot" not in text and "div.s64" not in text and "rem.s64" not in text
    assert len(re.findall(STORES[dtype], text)) >= 3
    assert "ld.global.nc.u32" in text and "ld.global.nc.u8" not in text
    assert ("cvt.rn.f16x2.f32" in text) == (dtype == "float16" and pairs)


@pytest.mark.parametrize("pairs", [False, True])
def test_bfloat16_is_rounded_by_integers_where_the_gpu_has_no_instruction(capability_in_turn, pairs):
    kernel = stream.build(3, "bfloat16", "NCHW", values=4, words=True, pairs=pairs)
    text = to_ptx(kernel, stream.argument_types("uint8", "float32", "bfloat16"), capability_in_turn)
    assert ("cvt.rn.bf16x2.f32" in text, "testp.notanumber" in text) == (pairs, not pairs)


@pytest.mark.parametrize("options", [{}, {"letterbox": True, "indexed": True}], ids=str)
@pytest.mark.parametrize("dtype, layout", FIXED_SHAPES)
def test_the_kernels_in_fixed_point(capability_in_turn, dtype, layout, options):
    layout = "NCHW" if layout else "NHWC"
    shape = FIXED_SHAPES[dtype, layout == "NCHW"]
    kernel = stream.build(3, dtype, layout, values=shape.values, words=True, fixed=True, **options)
    text = to_ptx(
        kernel,
        stream.argument_types("uint8", "int32", dtype, "int32" if options else None),
        capability_in_turn,
    )
    assert "local_depot" not in text and "dp2a.lo.u32.u32" in text and "dp2a.hi.u32.u32" in text
    assert ("st.global.cs.v4.b32" in text) == (layout == "NHWC")
    assert (".minnctapersm 4" in text) == (layout == "NHWC")


@pytest.mark.parametrize(
    ("layout", "options"), [("NCHW", {}), ("NHWC", {"letterbox": True, "indexed": True})]
)
def test_the_kernels_under_a_filter(capability_in_turn, layout, options):
    shape = filter_shape(3, layout == "NCHW")
    kernel = stream.build(
        3, "uint8", layout, values=shape.values, words=True, antialias=True, saturate=False, **options
    )
    index = "int32" if options else None
    text = to_ptx(kernel, stream.argument_types("uint8", "int32", "uint8", index), capability_in_turn)
    assert "local_depot" not in text and "rcp.approx" in text
    assert ("st.global.cs.u16" in text) == (layout == "NCHW")
    assert re.search(r"\.shared .*\[\d+\]", text)


ITEMS = {"counted": True, "flipped": True, "own": True}


@pytest.mark.parametrize(
    ("frame", "more"),
    [
        ("nv12", {}),
        ("nv12", ITEMS),
        ("p010", {"letterbox": True}),
        ("uint8", ITEMS),
        ("uint8", {"order": "BGRA"}),
    ],
    ids=str,
)
def test_the_kernels_for_video_and_for_items(capability_in_turn, frame, more):
    video = frame != "uint8"
    kernel = stream.build(3, "float32", "NCHW", values=2, frame_dtype=frame, words=not video, **more)
    items = video or "own" in more
    types = stream.argument_types(frame, "int32", "float32", "int32" if items else None, items)
    text = to_ptx(kernel, types, capability_in_turn)
    assert "local_depot" not in text and "st.global.cs.v2.f32" in text
    # A sample of luma by itself, and chroma in pairs; all colours are cut to their range by the last addition.
    loads = {"nv12": ("u8", "u16"), "p010": ("u16", "u32"), "uint8": ("u32",)}[frame]
    assert set(re.findall(r"ld\.global\.nc\.(\w+)", text)) == set(loads)
    assert ("fma.rn.sat.f32" in text) == video


@pytest.mark.parametrize("options", [{}, {"letterbox": True}], ids=str)
def test_boxes_may_be_an_argument(capability_in_turn, options):
    kernel = stream.build(3, "float32", "NCHW", values=2, words=True, inside=True, **options)
    types = stream.argument_types("uint8", "float32", "float32", "int32" if options else None)
    text = to_ptx(kernel, types, capability_in_turn)
    head, body = text.split("\n)\n", 1)
    assert re.search(rf",\s+\.param \.align 16 \.b8 {TAIL}\[{16 * MOST_BOXES_INSIDE}\]$", head)
    assert body.count("ld.param.v4.f32") == 1 and "local_depot" not in text
    # The pointer to boxes in memory isn't read: every driver takes 4 KiB of arguments.
    sizes = {"u64": 8, "s64": 8, "u32": 4, "f32": 4, "b64": 8, "b32": 4}
    rest = sum(sizes[kind] for kind in re.findall(r"\.param \.(\w\d\d) ", head))
    assert rest >= 80 and rest + 16 * MOST_BOXES_INSIDE <= 4096


@pytest.mark.parametrize(
    "options",
    [
        {"layout": "NHWC", "values": 4},
        {"letterbox": True, "values": 2, "words": True},
        {"indexed": True, "edge": "image"},
        {"channels": 1, "frame_dtype": "uint16", "values": 2},
        {"channels": 4, "values": 2, "words": True},
    ],
    ids=str,
)
def test_other_kinds_stay_in_registers(capability_in_turn, options):
    kernel = {"channels": 3, "layout": "NCHW", "frame_dtype": "uint8", **options}
    channels, layout = kernel.pop("channels"), kernel.pop("layout")
    index = "int64" if options.get("letterbox") or options.get("indexed") else None
    types = stream.argument_types(kernel["frame_dtype"], "int32", "float32", index)
    assert "local_depot" not in to_ptx(
        stream.build(channels, "float32", layout, **kernel), types, capability_in_turn
    )


def test_words_are_for_planes_of_bytes_alone():
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


@pytest.mark.parametrize("shape", [*SHAPES.values(), *FIXED_SHAPES.values()])
@pytest.mark.parametrize("size", [8, 32, 64, 96, 224])
def test_no_band_of_a_small_result_is_without_rows(shape, size):
    grid, block, rows = tiling(shape, 1000, size, size, 132)
    assert grid[0] > 1 or (block[1] - 1) * rows < size


def test_small_batches_get_shorter_bands():
    shape = Shape(2, 7, 256)
    rows = [tiling(shape, items, 224, 224, 132).rows for items in (1, 28, 1000)]
    assert rows == sorted(rows) and rows[0] < rows[-1] == 7
    one = tiling(shape, 1, 224, 224, 132)
    assert one.grid[0] >= 112  # nearly a block for every multiprocessor, from a single crop
