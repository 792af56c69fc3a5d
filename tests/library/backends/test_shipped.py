"""Kernels that a wheel carries are taken for the GPUs that they suit, and only if they are of the sources at hand."""

import logging
import sys
from pathlib import Path

import pytest
from pretended import forget

from octopus import DeviceError, InputError
from octopus.backends import shipped
from octopus.backends.cpu import compile as cpu
from octopus.backends.cuda import compile, device
from octopus.kernels.arguments import STREAM, Arguments

NAME = "stream-uint8x3-float32-nchw-by2-inside-words"
HALF = "stream-uint8x3-float16-nchw-by4-inside-words-fixed"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder in the place of the wheel's."""
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    forget((shipped._fresh, shipped._texts))
    yield tmp_path
    forget((shipped._fresh, shipped._texts))


@pytest.fixture
def script():
    """workflow/scripts/wheel_kernels.py"""
    pytest.importorskip("numba_cuda")
    scripts = str(Path(__file__).parents[3] / "workflow/scripts")
    sys.path.insert(0, scripts)
    try:
        import wheel_kernels

        return wheel_kernels
    finally:
        sys.path.remove(scripts)


def test_each_gpu_gets_the_ptx_of_the_last_capability_before_it(folder):
    keys = {shipped.key(name, capability): f"{name} {capability}" for name, capability in (
        (NAME, (7, 5)), (HALF, (7, 5)), (HALF, (8, 0)),
    )}  # fmt: skip
    shipped.save(folder, keys, {"launches": b"\0\1code"})
    assert shipped.ptx(NAME, (9, 0)) == shipped.ptx(NAME, (7, 5)) == f"{NAME} (7, 5)"
    assert [shipped.ptx(HALF, found) for found in ((7, 5), (8, 0), (12, 0))] == [
        f"{HALF} (7, 5)", f"{HALF} (8, 0)", f"{HALF} (8, 0)",
    ]  # fmt: skip
    assert shipped.ptx(NAME, (7, 0)) is None
    assert shipped.ptx("stream-uint8x4-float32-nchw", (9, 0)) is None
    assert shipped.code("launches") in (b"\0\1code", None) and shipped.code("copies") is None


def test_kernels_of_other_sources_are_not_taken(folder, caplog):
    shipped.save(folder, {shipped.key(NAME, (7, 5)): "old"}, {})
    (folder / "cuda.digest").write_text("another\n")
    with caplog.at_level(logging.WARNING):
        assert shipped.ptx(NAME, (9, 0)) is None
    assert "are of other sources and are not used" in caplog.text


def test_a_kernel_that_no_wheel_carries_needs_a_compiler(folder, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setitem(sys.modules, "cuda.core", type("core", (), {"ObjectCode": None}))
    monkeypatch.setattr(compile, "current", lambda: None)
    monkeypatch.setattr(compile, "compute_capability", lambda: (9, 0))
    monkeypatch.setattr(device, "_installed", lambda name: False)
    with pytest.raises(DeviceError, match=r"kernel odd is not among .*no compiler.*octopus-ragged\[compile\]"):
        compile.load("odd", pytest.fail)
    monkeypatch.setattr(device, "_installed", lambda name: True)
    monkeypatch.setattr(device, "version", lambda name: "2.5.1")
    with pytest.raises(DeviceError, match=r'beside NumPy 2\.5\.1: pip install "numpy<2\.5"'):
        compile.load("odd", pytest.fail)


def test_another_compiler_is_chosen_by_its_name_alone(monkeypatch):
    monkeypatch.setenv("OCTOPUS_COMPILER", "mlir")
    monkeypatch.setattr(device, "_installed", lambda name: name == "numba_cuda_mlir")
    monkeypatch.setattr(device, "version", lambda name: "2.5.1")
    assert device.compiler_problem() is None
    monkeypatch.setenv("OCTOPUS_COMPILER", "nvcc")
    with pytest.raises(InputError, match="OCTOPUS_COMPILER is 'nvcc'; set it to one of numba, mlir"):
        device.compiler_problem()


def test_the_script_makes_ptx_and_code_that_links(script, folder):
    kernels = dict(script.share(0, 1, [NAME]))
    assert [name for name in kernels if "-count" not in name][:1] == [shipped.key(NAME, (7, 5))]
    shipped.save(folder, kernels, code := script.host_code())
    text = shipped.ptx(NAME, (9, 0))
    assert ".target sm_75" in text and compile.entry_name(text) == "stream_kernel"
    assert not {"//", "NumbaEnv"} & {word for word in ("//", "NumbaEnv") if word in text}
    assert set(code) == {"launches", "images-survey", "images-number", "copies"}
    assert all(cpu.link(made, cpu.ENTRY if name == "launches" else cpu.SYMBOL) for name, made in code.items())


def test_every_kernel_of_the_readme_is_among_the_wheel_s(script):
    wanted = {
        f"stream-uint8x3-{dtype}-{layout}{antialias}{letterbox}-by"
        for dtype in ("float32", "float16", "uint8") for layout in ("nchw", "nhwc")
        for antialias in ("", "-antialias") for letterbox in ("", "-letterbox")
    }  # fmt: skip
    wanted |= {
        f"images-tiles-3-{kind}" for kind in ("2-true-none-float32-rows-ctpp-14", "1-true-none-float32-batch-nchw")
    }
    own_sizes = ("-float32-block_search-by2-words", "-float32-block_search-by2", "-bilinear-quads-float32-block_search")
    wanted |= {f"varied-uint8x3-{dtype}-nchw{form}" for dtype in ("float32", "float16", "uint8") for form in own_sizes}
    names = script.asked((8, 0))
    assert {start for start in wanted if not any(name.startswith(start) for name in names)} == set()


def test_arguments_are_words_by_name():
    table = Arguments.table("*frame frame", "int32 width", "float32 gain", "float64 scale", "int64 step")
    assert table.of(frame="nv12").kinds[0] == "*uint8"
    assert table.words({"width": 3, "gain": 1.0, "scale": 1.0}) == [0, 3, 0x3F800000, 0x3FF0000000000000, 0]
    assert table.place("gain") == 2
    with pytest.raises(KeyError, match="no arguments of this kernel: hight"):
        table.words({"hight": 1})


def test_a_kernel_with_other_parameters_than_its_arguments_is_refused():
    pytest.importorskip("numba_cuda")

    def kernel(frame, width, pitch):
        pass

    kernel.arguments = STREAM
    with pytest.raises(TypeError, match=r"kernel has the parameters \('frame', 'width', 'pitch'\), its arguments are"):
        compile.to_ptx(kernel, (8, 0))
