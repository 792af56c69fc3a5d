"""The simple CUDA kernel of images compiles for every GPU, and is launched with the arguments that it has."""

import numpy as np
import pytest

from octopus.errors import InputError
from octopus.kernels.images import IMAGE

pytest.importorskip("numba_cuda")

import pretended

from octopus.backends.cuda.compile import entry_name, to_ptx
from octopus.images import cuda
from octopus.images.spec import make_spec
from octopus.kernels.cuda import images as kernels

USUAL = {"filter": "bicubic", "rounding": "uint8", "mean": 3, "std": 2}
CALLS = {
    "each": ("resize_each", {"layout": "NHWC", "dtype": "float16", "rounding": "none", "antialias": False}),
    "rows": ("patch_rows", {"rounding": "uint8", "patch": 2, "merge": 1, "dtype": "bfloat16"}),
    "siglip": ("patch_rows", {"order": "PPC", "patch": 2, "filter": "lanczos", "rounding": "pillow", "max_rows": 7}),
}


def spec_of(name, source="uint8", channels=3):
    operation, own = CALLS[name]
    return make_spec(source, channels, operation, **USUAL | own)


@pytest.mark.parametrize("name", ["each", "rows", "siglip"])
def test_the_kernel_compiles(capability_in_turn, name):
    spec = spec_of(name)
    _, _, *kind = cuda.SimpleKernel(spec).built
    ptx = to_ptx(kernels.build(*kind), capability_in_turn)
    assert f".target sm_{capability_in_turn[0]}{capability_in_turn[1]}" in ptx
    assert "images_kernel" in entry_name(ptx)
    # Of Lanczos the sine has a table of its own for large numbers.
    assert ("local_depot" in ptx) == (spec.filter == "lanczos")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_kernel_of_padding_compiles(capability_in_turn, dtype):
    assert "padding_kernel" in entry_name(to_ptx(kernels.build_padding(dtype), capability_in_turn))


gpu = pytest.fixture(pretended.installed)


@pytest.fixture
def launched(gpu):
    """What the driver was asked to launch so far, of a GPU without tensor cores for bytes."""
    gpu.compute_capability = (7, 5)
    return gpu.launches


def test_more_blocks_than_a_grid_has(launched):
    engine = cuda.CudaEngine(spec_of("each"))
    table = np.zeros(2, IMAGE)
    table["rows"] = table["columns"] = 2**20
    with pytest.raises(InputError, match="more than one launch can have"):
        engine.prepare(table)


def test_a_captured_launch_is_used_again_for_no_more_blocks(launched):
    engine = cuda.CudaEngine(spec_of("each"))
    table = np.zeros(2, IMAGE)
    table["rows"], table["columns"] = 16, 64
    captured = engine.prepare(table)
    assert engine.prepare(table[:1], captured).blocks == 4
    table["rows"] = 17
    with pytest.raises(InputError, match="capture a run of the largest"):
        engine.prepare(table, captured)
