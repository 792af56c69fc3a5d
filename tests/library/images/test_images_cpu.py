"""The CPU kernels of images against the float64 reference: every form of source, result and item."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from images_case import noise, run, run_table, spec_of, table_of

from octopus.backends.cpu import threads
from octopus.images import calls, cpu
from octopus.images.cpu import CpuEngine
from octopus.images.spec import FIXED
from octopus.kernels.images import bfloat16_bits, nearest_pixel
from octopus_study.reference import images as reference

RNG = np.random.default_rng(3)
SIDES = [(40, 60), (7, 5), (1, 90), (33, 16), (120, 31)]
SIZES = [(28, 56), (28, 28), (56, 28), (84, 56), (56, 112)]


def test_torchs_rounding_is_that_of_its_float_kernels_on_a_gpu(monkeypatch):
    monkeypatch.setattr("octopus.images.cuda.CudaEngine", lambda spec: spec)
    call = "resize_each", {"rounding": "torch"}, SimpleNamespace(dtype="uint8", channels=3)
    assert calls.make_engine(*call, "cuda").rounding == "uint8"
    assert calls.make_engine(*call, "cpu").spec.rounding == "torch"


@pytest.mark.parametrize("rounding", ["uint8", *FIXED])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
def test_dtypes_bit_for_bit(dtype, rounding):
    """Nearest takes pixels as they are; gains and biases that lose nothing leave the cast alone to decide."""
    images = [noise(RNG, *side) for side in SIDES]
    options = {"mean": [100, 50.5, -3], "std": [1 / 257, 2, -1 / 8 + 0.25]}
    spec = spec_of(filter="nearest", rounding=rounding, dtype=dtype, **options)
    exact = [image.astype(np.float32) * spec.gain + spec.bias for image in images]
    expected = reference.each(exact, SIZES, filter="nearest")
    assert np.array_equal(run(images, SIZES, spec), reference.cast(expected, dtype))


@pytest.mark.parametrize(("size", "count"), [(10, 3), (70, 21), (7, 7), (1, 5), (5, 1), (6, 4), (330, 99), (1000, 7)])
def test_nearest_pixel_is_pillows_running_sum(size, count):
    """That of the CUDA kernel, which has no sum to go on with."""
    expected = reference.weights(size, count, "nearest", True).argmax(axis=1)
    assert [nearest_pixel(i, size, count) for i in range(count)] == expected.tolist()


def test_bfloat16_rounds_half_to_even():
    values = np.array([1.0, 1.00390625, 1.01171875, -3.3e38, np.inf, -0.0, 3.4e38], np.float32)
    bits = [int(bfloat16_bits(value)) for value in values]
    assert bits == [0x3F80, 0x3F80, 0x3F82, 0xFF78, 0x7F80, 0x8000, 0x7F80]
    assert bits[:4] == reference.cast(values[:4], "bfloat16").tolist()
    assert bfloat16_bits(np.float32(np.nan)) & 0x7FFF > 0x7F80


@pytest.mark.parametrize("kind", ["each", "batch", "rows"])
@pytest.mark.parametrize("streamed", [True, False])
def test_tiles_and_threads_change_nothing(kind, streamed, monkeypatch):
    images = [noise(RNG, *side) for side in SIDES]
    options = {
        "each": {"layout": "NHWC"},
        "batch": {"size": (50, 70), "letterbox": True, "return_transform": True, "pad_value": 9},
    }.get(kind, {"patch": 14, "merge": 2})
    spec = spec_of(kind=kind, filter="lanczos", mean=100, std=3, **options)
    corners = [(3, -5)] * len(images) if kind == "batch" else None
    whole = run(images, SIZES, spec, corners)
    monkeypatch.setattr(cpu, "STREAMED", 0 if streamed else 1 << 40)
    for cached, band, number in product((1, 20_000), (1, 30), (1, 2)):
        monkeypatch.setattr(cpu, "CACHED", cached)
        monkeypatch.setattr(cpu, "BAND", band)
        monkeypatch.setattr(threads._pool, "count", number)
        assert np.array_equal(run(images, SIZES, spec, corners), whole), (cached, band, number)


def test_records_without_an_image_and_without_any():
    images = [noise(RNG, 20, 30), noise(RNG, 20, 30)]
    spec = spec_of()
    table = table_of(images, [(8, 9), (8, 9)], spec)
    table["pointer"][0] = 0
    out = np.full(2 * 8 * 9 * 3, 7, np.float32)
    run_table(CpuEngine(spec), table, out)
    assert (out[: 8 * 9 * 3] == 7).all()
    assert np.array_equal(out[8 * 9 * 3 :], run(images[1:], [(8, 9)], spec))
    run_table(CpuEngine(spec), table[:0], out)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_nothing_is_written_beyond(dtype):
    """Items at odd addresses, one after the other, with room between that stays as it was."""
    images = [noise(RNG, *side) for side in SIDES]
    spec = spec_of(dtype=dtype, rounding="uint8", filter="bicubic")
    packed = run(images, SIZES, spec)
    table = table_of(images, SIZES, spec)
    table["out"] += 5 + 7 * np.arange(len(images))
    out = np.full(len(packed) + 100, 99, packed.dtype)
    run_table(CpuEngine(spec), table, out)
    free = np.ones(len(out), bool)
    for record, (height, width) in zip(table, SIZES, strict=True):
        free[record["out"] : record["out"] + 3 * height * width] = False
    assert (out[free] == 99).all()
    assert np.array_equal(out[~free], packed)


@pytest.mark.parametrize(("needed", "form"), [
    ("", ("", 32)), ("avx2", ("llvm.x86.avx2.pmadd.wd", 16)), ("avx512bw", ("llvm.x86.avx512.pmaddw.d.512", 32)),
])  # fmt: skip
def test_pairs_are_multiplied_alike_by_every_processor(needed, form, monkeypatch):
    from llvmlite import binding

    from octopus.backends.cpu import compile
    from octopus.kernels.cpu import pointer, vectors

    if needed and not binding.get_host_cpu_features().get(needed):
        pytest.skip(f"a processor without {needed}")
    monkeypatch.setattr(vectors, "_multiply_add", lambda: form)

    def kernel(arguments):
        vectors.sum_across(
            pointer(arguments[0], np.int16), 32, 32, pointer(arguments[1], np.int32), arguments[2],
            pointer(arguments[3], np.int16), 16, 1,
        )  # fmt: skip

    random = np.random.default_rng(1)
    values = random.integers(0, 256, (7, 16, 2)).astype(np.int16)
    weights = random.integers(-(2**17), 2**19, (7, 2))
    low = weights.astype(np.int16)
    split = np.stack([low, (weights - low) >> 16], axis=1).astype(np.int16)  # a pair of each in an int32
    found = np.zeros(16, np.int16)
    call = compile._PROTOTYPE(compile.link(compile.to_object(kernel)))
    arguments = np.array([values.ctypes.data, split.ctypes.data, len(values), found.ctypes.data])
    call(arguments.ctypes.data)
    total = (values * weights[:, None]).sum(axis=(0, 2)) + (1 << 21)
    assert np.array_equal(found, (total >> 22).clip(0, 255)) and np.ptp(found) > 0
