"""Which sensor measures what: the candidates of a device in order, opened by a successful reading."""

from dataclasses import dataclass
from typing import Any, Literal

from octopus_study.names import POWER_SENSORS
from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.nvml import NvmlSource
from octopus_study.power.source import PowerSource

Kind = Literal["nvml", "ina3221"]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """What to open, in this process or in the sampler's; `root` is of the file system that sysfs is looked for in."""

    kind: Kind
    root: str = "/"

    @property
    def title(self) -> str:
        """The sensor's name as a reader knows it."""
        return POWER_SENSORS[self.kind]

    def open(self, nvml: Any = None, device: Any = None) -> PowerSource:
        """Open the source by reading it once; `nvml` and `device` stand in for ``pynvml`` and the handle of the GPU."""
        return NvmlSource(nvml, device) if self.kind == "nvml" else Ina3221Source(self.root)


def candidates(device: str) -> tuple[SourceSpec, ...]:
    """Return the sources that could measure a device (``cpu`` or ``cuda``), the closest first. A GPU's board measures
    itself; on a Jetson NVML gives nothing, and the module's rail includes CPU and GPU."""
    module = SourceSpec("ina3221")
    return (SourceSpec("nvml"), module) if device == "cuda" else (module,)
