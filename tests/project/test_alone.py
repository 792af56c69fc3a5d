"""On a GPU one study measures at a time, and begins when nothing else works there."""

import threading
from types import SimpleNamespace

import pytest

from octopus.errors import DeviceError
from octopus_study.cli import alone


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path) -> list[int]:
    """A pretended GPU; the list holds how busy it is at each reading, the last one for ever."""
    readings: list[int] = [0]

    def read(function: str) -> object:
        if function == "nvmlDeviceGetComputeRunningProcesses":
            return [SimpleNamespace(pid=4711)]
        return SimpleNamespace(gpu=readings.pop(0) if len(readings) > 1 else readings[0])

    monkeypatch.setattr(alone, "resolve", lambda device: "cuda")
    monkeypatch.setattr(alone, "gpu_name", lambda: "Pretended GPU")
    monkeypatch.setattr(alone._nvml, "read", read)
    monkeypatch.setattr(alone._nvml, "pci_address", lambda: "0000:01:00.0")
    monkeypatch.setattr(alone.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(alone, "BETWEEN_SECONDS", 0.001)
    monkeypatch.setattr(alone, "PATIENCE_SECONDS", 0.05)
    monkeypatch.delenv(alone.ANYWAY, raising=False)
    return readings


def test_a_busy_gpu_is_refused_by_name(gpu: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    gpu[:] = [97]
    said = r"Pretended GPU: it was busy 97 % .*process 4711.*OCTOPUS_BUSY=measure"
    with pytest.raises(DeviceError, match=said), alone.alone("cuda"):
        pytest.fail("began beside other work")
    monkeypatch.setenv(alone.ANYWAY, "measure")
    with alone.alone("cuda"):
        pass


def test_a_study_that_has_just_ended_is_waited_for(gpu: list[int]) -> None:
    gpu[:] = [90, 0, 60, 0, 0, 0]
    with alone.alone("cuda"):
        assert gpu == [0]


def test_two_studies_take_turns(gpu: list[int]) -> None:
    began = threading.Event()

    def second() -> None:
        with alone.alone("cuda"):
            began.set()

    with alone.alone("cuda"):
        other = threading.Thread(target=second)
        other.start()
        assert not began.wait(0.2)
    other.join(10)
    assert began.is_set()


def test_a_cpu_is_not_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alone, "_take", lambda file: pytest.fail("locked"))
    with alone.alone("cpu"):
        pass
