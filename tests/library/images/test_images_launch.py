"""The simple CUDA kernel of images compiles for every GPU, and is launched with the arguments that it has."""

from types import SimpleNamespace

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

QUEUE = SimpleNamespace(handle=5)
USUAL = {"filter": "bicubic", "rounding": "uint8", "mean": 3, "std": 2}
CALLS = {
    "batch": ("resize", {"size": (20, 70)}),
    "each": ("resize_each", {"layout": "NHWC", "dtype": "float16", "rounding": "none", "antialias": False}),
    "rows": ("patch_rows", {"rounding": "uint8", "patch": 2, "merge": 1, "dtype": "bfloat16"}),
    "siglip": ("patch_rows", {"order": "PPC", "patch": 2, "filter": "lanczos", "rounding": "pillow", "max_rows": 7}),
    "nearest": ("resize", {"layout": "NHWC", "filter": "nearest", "size": 8, "dtype": "uint8"}),
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
def test_the_kernel_of_padding_compiles(capability, dtype):
    assert "padding_kernel" in entry_name(to_ptx(kernels.build_padding(dtype), capability))


gpu = pytest.fixture(pretended.installed)


@pytest.fixture
def launched(gpu):
    """What the driver was asked to launch so far, of a GPU without tensor cores for bytes."""
    gpu.compute_capability = (7, 5)
    return gpu.launches


@pytest.mark.parametrize(("name", "tiles"), [
    ("batch", [9, 9, 9]), ("each", [1, 4, 15]), ("rows", [1, 4, 15]), ("nearest", [1, 1, 1]),
])  # fmt: skip
def test_arguments_and_blocks_fit_the_kernel(launched, name, tiles):
    engine = cuda.CudaEngine(spec_of(name))
    table = np.zeros(3, IMAGE)
    table["rows"], table["columns"] = (8, 10, 20), (32, 34, 160)
    launch = engine.prepare(table)
    assert launch.blocks == sum(tiles)
    assert table["first_tile"].tolist() == [0, tiles[0], sum(tiles[:2])]
    engine.launch(launch.kernel.prepared(launch, 3), 4096, 8192, QUEUE)
    engine.again(QUEUE)
    made, again = launched
    assert made.values == again.values and (made.grid, made.block, made.stream) == ((sum(tiles), 1, 1), (256, 1, 1), 5)
    assert made.values[:4] == (4096, 4096, 3, 8192)
    assert made.values[4:6] == engine.spec.item and made.values[9:13] == (engine.spec.values, 0.5, 0.5, 0.5)


def test_padding_is_launched_for_every_image(launched):
    cuda.CudaEngine(spec_of("siglip")).pad(4096, 5, 8192, 1024, QUEUE)
    (made,) = launched
    assert (made.grid, made.block) == ((80, 1, 1), (256, 1, 1))
    assert made.values == (4096, 4096, 7, 4, 12, 8192, 1024)


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
