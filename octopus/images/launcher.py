"""What a CUDA kernel of images is to the engine that chooses among them, and what all of them need."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from octopus.arrays.launch import PreparedLaunch


class Launch(NamedTuple):
    """How a kernel does the images of one table.

    Attributes
    ----------
    kernel : Launcher
    blocks : int
        Of the grid.
    cut : object
        What else the kernel needs to know for these images.
    """

    kernel: Launcher
    blocks: int
    cut: Any = None


class Launcher(Protocol):
    """A kernel for one spec."""

    def load(self) -> None:
        """Compile it, or load it from the disk, unless that is done."""

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        """Number the tiles of a table (N,) of `IMAGE`, and say how to launch; None if this kernel can't do its images.

        With `like`, a launch of this kernel that is captured: None also if that has not enough of anything.

        Addresses must not matter here, but for those that are 0, which are no images: what this does to a table is
        kept for others that differ in addresses alone.
        """

    def prepared(self, launch: Launch, count: int, **upload: Any) -> PreparedLaunch:
        """The launch for tables of `count` records, to be called with the addresses of result, table and table.

        `upload` are `table`, `there` and `column` of `PreparedLaunch`.
        """


def four(values: NDArray[np.float32]) -> list[float]:
    """The values of up to four channels, filled up with zeros: a kernel has an argument for each."""
    return [*values.tolist(), *[0.0] * (4 - len(values))]
