"""Choosing a device, the kernel cache, and what is said when a GPU is missing."""

from types import SimpleNamespace

import numpy as np
import pytest

from octopus import DeviceError, InputError, OutOfMemoryError, backends
from octopus.arrays.views import view
from octopus.backends import cache
from octopus.backends.cuda import device, memory
from octopus.backends.cuda.device import current


def test_auto_is_the_cpu_without_a_gpu(monkeypatch):
    monkeypatch.setattr(backends.cuda, "missing", lambda: "there is none")
    monkeypatch.setattr(device, "missing", lambda: "there is none")
    assert backends.resolve("auto") == backends.resolve("cpu") == "cpu"
    with pytest.raises(DeviceError, match="'cuda' was asked for, but no GPU is usable: there is none"):
        backends.resolve("cuda")


def test_auto_is_the_gpu_where_there_is_one(monkeypatch):
    monkeypatch.setattr(backends.cuda, "missing", lambda: None)
    assert backends.resolve("auto") == "cuda"


def ask_for_missing(monkeypatch, **changes):
    for name, value in changes.items():
        monkeypatch.setattr(device, name, value)
    return device.missing.__wrapped__()


def test_a_missing_package_a_missing_driver_and_hidden_devices_are_said(monkeypatch):
    why = ask_for_missing(monkeypatch, _installed=lambda name: name != "cuda.core")
    assert "cuda.core" in why and "numba_cuda" not in why and "pip install" in why
    why = ask_for_missing(monkeypatch, _installed=lambda name: True, _driver_problem=lambda: "no driver")
    assert why == "no driver"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert ask_for_missing(monkeypatch) == "CUDA_VISIBLE_DEVICES is empty"


@pytest.mark.parametrize(("offered", "words"), [(12040, "it offers CUDA 12.4, and cuda-bindings 13.5.0"), (13010, "")])
def test_a_driver_older_than_the_packages_is_said(offered, words, monkeypatch):
    monkeypatch.setattr(device, "driver", lambda: SimpleNamespace(cuDriverGetVersion=lambda: (0, offered)))
    monkeypatch.setattr(device, "version", lambda package: "13.5.0")
    assert (device.outdated() or "").startswith(words) and bool(device.outdated()) == bool(words)


def test_streams_of_other_libraries_are_known_and_other_things_refused():
    torch, cupy, protocol = ({"cuda_stream": 7}, {"ptr": 8}, {"__cuda_stream__": lambda: (0, 9)})
    others = [SimpleNamespace(**stream) for stream in (torch, cupy, protocol)]
    assert [device._handle(stream) for stream in (None, 5, *others)] == [0, 5, 7, 8, 9]
    with pytest.raises(InputError, match="pass a CUDA stream"):
        device._handle("stream 0")


def test_compiled_text_is_kept_whole_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    assert cache.load("a/kernel.ptx") is None
    cache.store("a/kernel.ptx", "text")
    assert cache.load("a/kernel.ptx") == "text"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["kernel.ptx"]


def test_a_user_without_a_home_keeps_kernels_in_the_spare_folder_or_nowhere(tmp_path, monkeypatch):
    for name in ("OCTOPUS_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    cache.store("kernel", b"code")
    assert cache.load_bytes("kernel") == b"code" and cache.cache_dir().parent == tmp_path
    monkeypatch.setattr(cache, "spare_dir", lambda: None)
    cache.store("kernel", b"code")
    assert cache.load_bytes("kernel") is None


@pytest.mark.parametrize("words, error, said", [
    ("CUDA_ERROR_OUT_OF_MEMORY: no", OutOfMemoryError, "1,000 bytes are needed on the GPU, 7 are free"),
    ("the GPU is gone", RuntimeError, "the GPU is gone"),
])  # fmt: skip
def test_memory_that_a_gpu_lacks_is_said_and_other_errors_pass(monkeypatch, words, error, said):
    def allocate(nbytes, stream):
        raise RuntimeError(words)

    monkeypatch.setattr(memory, "current", lambda: SimpleNamespace(default_stream=None, allocate=allocate))
    monkeypatch.setattr(memory, "free_bytes", lambda: 7)
    with pytest.raises(error, match=said):
        memory.allocate(1000)


def test_page_locked_memory_that_the_system_lacks_is_said(monkeypatch):
    monkeypatch.setattr(memory, "current", lambda: None)
    monkeypatch.setattr(memory, "driver", lambda: SimpleNamespace(cuMemHostAlloc=lambda nbytes, flags: (2, 0)))
    with pytest.raises(OutOfMemoryError, match="12 bytes of page-locked memory are needed"):
        memory.pinned((3,), np.float32)


def test_parts_of_an_array_lie_on_its_gpu():
    whole = memory.DeviceArray((4, 3), np.float32, buffer=object(), pointer=64, ordinal=1)
    assert [view(part, "part").ordinal for part in (whole, whole.head(2), whole.part(3, (2,)))] == [1, 1, 1]
    assert whole.head(2).shape == (2, 3) and whole.part(3, (2,)).pointer == 76


@pytest.mark.gpu
def test_memory_that_the_gpu_lacks_is_said():
    with pytest.raises(OutOfMemoryError, match="are needed on the GPU"):
        memory.allocate(1 << 50)


@pytest.mark.gpu
def test_page_locked_memory_is_copied_and_freed_with_its_last_view():
    host = memory.pinned((3, 5), np.float32)
    host[...] = 2.5
    device = memory.DeviceArray((3, 5), np.float32).copy_from_host(host)
    back = memory.pinned((3, 5), np.float32)
    memory.copy(back.ctypes.data, device.pointer, device.nbytes)
    device.fill_bytes(0xFF)
    current().sync()
    assert (back == 2.5).all()
    assert np.isnan(device.copy_to_host()).all()
    part = back[1:]
    del back
    assert (part == 2.5).all()
