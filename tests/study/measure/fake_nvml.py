"""An NVML whose readings are set by the test; what isn't set raises, as where it is unsupported."""

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """Like the binding's own."""


class FakeNvml:
    """Stands in for the module pynvml."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1

    def __init__(self, **readings: Any) -> None:
        self.readings = readings

    def nvmlInit(self) -> None:  # noqa: N802  (NVML's name)
        if "nvmlInit" in self.readings:
            raise NVMLError(self.readings["nvmlInit"])

    def nvmlDeviceGetHandleByPciBusId(self, address: str) -> str:  # noqa: N802
        return f"handle of {address}"

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            value = self.readings.get(name, NVMLError("Not Supported"))
            value = value(*arguments) if callable(value) else value
            if isinstance(value, Exception):
                raise value
            return value

        return call


def h200(**changes: Any) -> FakeNvml:
    """Readings as an H200 gives them."""
    readings = {
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlSystemGetDriverVersion": "580.159.03",
        "nvmlSystemGetCudaDriverVersion_v2": 13000,
        "nvmlDeviceGetCudaComputeCapability": (9, 0),
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=150754820096, used=1, free=2),
        "nvmlDeviceGetEnforcedPowerLimit": 700000,
        "nvmlDeviceGetMaxClockInfo": lambda handle, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetClockInfo": lambda handle, kind: {1: 345, 2: 3201}[kind],
        "nvmlDeviceGetTemperature": 31,
        "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
    }
    return FakeNvml(**{**readings, **changes})
