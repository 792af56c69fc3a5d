"""Which sensor measures what: the candidates of a device in order, opened by a successful reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from octopus_study.power.ina3221 import Ina3221Source
from octopus_study.power.nvml import NvmlSource
from octopus_study.power.rapl import RaplSource
from octopus_study.power.source import PowerSource, SensorError

Kind = Literal["nvml", "ina3221", "rapl"]
TITLES: dict[str, str] = {"nvml": "NVML", "ina3221": "INA3221", "rapl": "RAPL"}


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """What to open, in this process or in the sampler's.

    Attributes
    ----------
    kind : {"nvml", "ina3221", "rapl"}
    root : str
        Of the file system that sysfs is looked for in.
    """

    kind: Kind
    root: str = "/"

    @property
    def title(self) -> str:
        """The sensor's name as a reader knows it."""
        return TITLES[self.kind]

    def open(self, nvml: Any = None, device: Any = None) -> PowerSource:
        """Open the source by reading it once.

        Parameters
        ----------
        nvml, device : optional
            Stand in for ``pynvml`` and the handle of the GPU.

        Raises
        ------
        SensorError
            It can't be read; the message says why.
        """
        if self.kind == "nvml":
            return NvmlSource(nvml, device)
        if self.kind == "ina3221":
            return Ina3221Source(self.root)
        return RaplSource(self.root)


class NoSensor(SensorError):  # noqa: N818  (a finding about the machine)
    """No source could be used; the message names all that were looked at, with their reasons.

    Parameters
    ----------
    looked : mapping of str to str
        Reason by kind of source.
    """

    def __init__(self, looked: Mapping[str, str]) -> None:
        self.looked = dict(looked)
        found = "; ".join(f"{TITLES.get(kind, kind)}: {reason}" for kind, reason in looked.items())
        super().__init__(f"no power sensor (looked at {found or 'nothing'})")


def candidates(device: str) -> tuple[SourceSpec, ...]:
    """Return the sources that could measure a device, the closest first.

    A GPU's board measures itself; on a Jetson NVML gives nothing, and the module's rail includes the GPU. A processor
    has RAPL, or stands on such a module.

    Parameters
    ----------
    device : {"cpu", "cuda"}
    """
    first: Kind = "nvml" if device == "cuda" else "rapl"
    return SourceSpec(first), SourceSpec("ina3221")
