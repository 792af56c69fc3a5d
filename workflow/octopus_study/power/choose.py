"""Which sensor measures what: the candidates of a device in order, opened by a successful reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from octopus_study.names import POWER_SENSORS
from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.nvml import NvmlSource
from octopus_study.power.source import PowerSource, SensorError

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
        """Open the source by reading it once; `nvml` and `device` stand in for ``pynvml`` and the handle of the GPU.

        Raises
        ------
        SensorError
            It can't be read; the message says why.
        """
        return NvmlSource(nvml, device) if self.kind == "nvml" else Ina3221Source(self.root)


class NoSensor(SensorError):  # noqa: N818  (a finding about the machine)
    """No source could be used; `looked` has the reason by kind of source, and the message names all of them."""

    def __init__(self, looked: Mapping[str, str]) -> None:
        self.looked = dict(looked)
        found = "; ".join(f"{POWER_SENSORS.get(kind, kind)}: {reason}" for kind, reason in looked.items())
        super().__init__(f"no power sensor (looked at {found or 'nothing'})")


def candidates(device: str) -> tuple[SourceSpec, ...]:
    """Return the sources that could measure a device (``cpu`` or ``cuda``), the closest first.

    A GPU's board measures itself; on a Jetson NVML gives nothing, and the module's rail includes CPU and GPU.
    """
    module = SourceSpec("ina3221")
    return (SourceSpec("nvml"), module) if device == "cuda" else (module,)
