"""The CUDA kernels compile for every GPU that the artifact names, and as the design says, without a GPU."""

from __future__ import annotations

import re

import pytest
from gpu import PAD_MODES

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus.kernels.cuda import antialias, crop, plain


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_fused_kernel(capability_in_turn, dtype, layout):
    types = plain.argument_types("uint8", "float32", dtype)
    ptx = to_ptx(crop.build(3, dtype, layout), types, capability_in_turn)
    assert f".target sm_{capability_in_turn[0]}{capability_in_turn[1]}" in ptx
    assert "crop_kernel" in entry_name(ptx)
    # The channel arrays must live in registers: local memory would go through the L1 cache.
    assert "local_depot" not in ptx
    assert len(re.findall(r"\bst\.global", ptx)) >= 3
    assert ("st.global.cs" in ptx) == (dtype == "float32")


@pytest.mark.parametrize("channels", [1, 4])
def test_other_channel_counts_stay_in_registers(capability_in_turn, channels):
    types = plain.argument_types("uint16", "int64", "float32")
    assert "local_depot" not in to_ptx(crop.build(channels, "float32", "NCHW"), types, capability_in_turn)


@pytest.mark.parametrize(
    "options",
    [
        {"edge": "image"},
        {"letterbox": True},
        {"indexed": True},
        {"edge": "image", "letterbox": True, "indexed": True},
    ],
    ids=lambda options: "-".join(options),
)
def test_options_stay_in_registers_too(capability_in_turn, options):
    index = "int64" if options.keys() - {"edge"} else None
    types = plain.argument_types("uint8", "float32", "float32", index)
    ptx = to_ptx(crop.build(3, "float32", "NCHW", **options), types, capability_in_turn)
    assert f".target sm_{capability_in_turn[0]}{capability_in_turn[1]}" in ptx
    assert ("with_options" in entry_name(ptx)) == (index is not None)
    assert "local_depot" not in ptx and "st.global.cs" in ptx
    assert ("st.global.f32" in ptx) == ("letterbox" in options)  # the transform


@pytest.mark.parametrize("pad_mode", PAD_MODES)
@pytest.mark.parametrize("module", [crop, antialias])
def test_boxes_that_are_not_cut_stay_in_registers_too(capability_in_turn, module, pad_mode):
    kernel = module.build(3, "float32", "NCHW", edge="image", letterbox=True, indexed=True, pad_mode=pad_mode)
    ptx = to_ptx(kernel, plain.argument_types("uint8", "float32", "float32", "int32"), capability_in_turn)
    assert "kernel_with_options" in entry_name(ptx) and "local_depot" not in ptx


@pytest.mark.parametrize(
    ("frame_dtype", "channels", "dtype", "options"),
    [
        ("float32", 3, "uint8", {}),
        ("float32", 1, "float16", {"pad_mode": "constant"}),
        ("uint8", 2, "float32", {}),
        ("uint8", 5, "uint8", {"letterbox": True}),
        ("uint16", 13, "float32", {}),
        ("float32", 64, "float16", {"pad_mode": "reflect"}),
    ],
)
@pytest.mark.parametrize("module", [crop, antialias])
def test_other_frames_stay_in_registers_too(
    capability_in_turn, module, frame_dtype, channels, dtype, options
):
    index = "int32" if options or channels > 4 else None
    types = plain.argument_types(frame_dtype, "float32", dtype, index, channels > 4)
    ptx = to_ptx(module.build(channels, dtype, "NCHW", **options), types, capability_in_turn)
    assert ("of_many_channels" in entry_name(ptx)) == (channels > 4)
    assert "local_depot" not in ptx


@pytest.mark.parametrize(
    "options", [{}, {"edge": "image", "letterbox": True, "indexed": True}], ids=["plain", "all"]
)
def test_the_filter_stays_in_registers(capability_in_turn, options):
    types = plain.argument_types("uint8", "int32", "float16", "int32" if "letterbox" in options else None)
    ptx = to_ptx(antialias.build(3, "float16", "NHWC", **options), types, capability_in_turn)
    assert f".target sm_{capability_in_turn[0]}{capability_in_turn[1]}" in ptx
    assert "antialias_kernel" in entry_name(ptx)
    assert "local_depot" not in ptx


def test_two_entries_are_refused():
    with pytest.raises(RuntimeError, match="found 2"):
        entry_name(".visible .entry a(\n.visible .entry b(\n")
