"""The GPU board's power and energy counter, by NVML.

NVML initialises on boards where it then supports no reading (Jetson), so a source is opened by reading it. The energy
counter counts since the driver was loaded; on an H200 it advances each 100 ms. Two powers exist: the instantaneous one
(a field value) and ``nvmlDeviceGetPowerUsage``, which NVIDIA documents as a mean over one second on Ampere (without
GA100) and newer, and as instantaneous before. Where there are both the first is the power, since it shows what the
device does, and the second is kept for integrals: a reading of the moment each 100 ms meets a load of 30 frames per
second always in the same phases, and misses its mean by several percent.

Accuracy: NVIDIA's documentation of ``nvmlDeviceGetPowerUsage`` states +/- 5 % for Fermi and Kepler boards, and nothing
for newer ones; the same is assumed of them. It is a common factor of all figures of one board, and cancels in their
ratios. Yang, Adamek and Armour (SC24, arXiv 2312.02741) examined over seventy boards: some sample a part of the time
only, which is why the work of a window repeats itself from its beginning to its end.
"""

import time
from contextlib import suppress
from typing import Any

from octopus_study.measure import _nvml
from octopus_study.power.quantities import Channel, MilliJoule, MilliWatt, Watt
from octopus_study.power.source import PowerSource, Sample, SensorError

ACCURACY = 0.05
# Watts that a board can't exceed where its limit can't be read, as on those of laptops and small ones without a power
# management: what the largest connector of a board carries by its standard (12VHPWR, PCI Express CEM 5.0).
BOARD_CEILING_MW = 600_000
AVERAGED_SECONDS = 1.0  # taken for every board without an instantaneous power: waiting too long costs only time


class NvmlSource(PowerSource):
    """The GPU that CUDA uses; the first readings of power, energy and limit are made here. Tests give functions as
    those of ``pynvml``, and the handle with them."""

    name = "nvml"
    scope = "gpu_board"
    accuracy = ACCURACY

    def __init__(self, nvml: Any = None, device: Any = None) -> None:
        if nvml is None:
            opened = _nvml.session()
            if opened is None:
                raise SensorError(f"it doesn't answer ({_why_closed()})")
            nvml, device = opened
        self._nvml, self._device = nvml, device
        if self._is_sliced():
            raise SensorError("MIG: its power is that of the whole board, of which this process has a slice", "scope")
        self._channel = Channel("nvml", 0)
        self._instant = self._has_instant()
        self.averaged_seconds = 0.0 if self._instant else AVERAGED_SECONDS
        self._has_usage = self._answers("PowerUsage")
        self._has_counter = self._answers("TotalEnergyConsumption")
        self.read()
        self.limit()

    def read(self) -> Sample:
        """Read the power, and the energy counter where the board has one."""
        start = time.monotonic_ns()
        counter = None
        if self._has_counter:
            counter = MilliJoule(int(self._get("TotalEnergyConsumption")), self._channel)
        power = self._watts(self._field() if self._instant else self._get("PowerUsage"))
        averaged = self._watts(self._get("PowerUsage")) if self._instant and self._has_usage else None
        end = time.monotonic_ns()
        return Sample((start + end) // 2, end - start, power, counter, averaged)

    def limit(self) -> Watt:
        """Return the enforced power limit, else a board's ceiling."""
        milliwatts = BOARD_CEILING_MW
        with suppress(SensorError):
            milliwatts = self._get("EnforcedPowerLimit")
        found = self._watts(milliwatts)
        if found.watts <= 0:
            raise SensorError(f"NVML reports a power limit of {found}", "plausible-range")
        return found

    def facts(self) -> dict[str, Any]:
        """Return what is read."""
        return super().facts() | {
            "power": "field value POWER_INSTANT" if self._instant else "nvmlDeviceGetPowerUsage",
            "integrated": "nvmlDeviceGetPowerUsage" if self._has_usage else "power",
            "counter": "nvmlDeviceGetTotalEnergyConsumption" if self._has_counter else None,
            "averaged_seconds": self.averaged_seconds,
        }

    def _watts(self, milliwatts: Any) -> Watt:
        return Watt.from_power(MilliWatt(int(milliwatts), self._channel))

    def _field(self) -> int:
        """Return the instantaneous power in mW; a field value without a named scope is that of the GPU."""
        field = getattr(self._nvml, "NVML_FI_DEV_POWER_INSTANT", None)
        if field is None:
            raise SensorError("this version of nvidia-ml-py knows no POWER_INSTANT")
        found = self._get("FieldValues", [field])[0]
        if found.nvmlReturn != 0:
            raise SensorError(f"POWER_INSTANT answers with error {found.nvmlReturn}")
        return int(found.value.uiVal)

    def _get(self, name: str, *arguments: Any) -> Any:
        function = f"nvmlDeviceGet{name}"
        try:
            return getattr(self._nvml, function)(self._device, *arguments)
        except Exception as error:  # pynvml has one exception per error code; all mean that nothing was read
            raise SensorError(f"{function}: {error}") from None

    def _is_sliced(self) -> bool:
        """Tell whether the board is split by MIG, where CUDA sees one slice and NVML's power has no smaller part."""
        with suppress(SensorError):
            return bool(self._get("MigMode")[0])
        return False

    def _has_instant(self) -> bool:
        with suppress(SensorError):
            return self._field() > 0
        return False

    def _answers(self, name: str) -> bool:
        with suppress(SensorError):
            self._get(name)
            return True
        return False


def _why_closed() -> str:
    """Say what keeps NVML from answering: the package, the library, the driver, or the GPU that CUDA uses."""
    try:
        import pynvml

        pynvml.nvmlInit()
        pynvml.nvmlDeviceGetHandleByPciBusId(_nvml.pci_address())
    except Exception as error:  # the same ones that `octopus_study.measure._nvml.session` takes for an answer
        return str(error) or type(error).__name__
    return "it did not at first"
