"""The way to run a call on images through `kernels.cuda.image_tiles`: which calls it takes, and its launches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numpy.typing import NDArray

from octopus.arrays.launch import Cuda, PreparedLaunch
from octopus.backends.cuda.compile import function_of
from octopus.backends.cuda.device import current
from octopus.images import cutting
from octopus.images.cutting import Cut
from octopus.images.launcher import Launch, four
from octopus.images.spec import ImageSpec
from octopus.kernels import images
from octopus.kernels.arguments import IMAGE_TILES
from octopus.kernels.cuda.image_kind import ImageKernel

CAPABILITY = (8, 0)  # from here on the tensor cores multiply int8
SIDES = (10, 12, 14, 16)  # of patches that are a warp's block


def kernel_of(spec: ImageSpec) -> ImageKernel | None:
    """The kernel for a spec; None if it has to be the simple one."""
    code = images.filter_code(spec.filter, spec.antialias)
    if spec.source != "uint8" or code not in (images.BILINEAR, images.BICUBIC, images.LANCZOS):
        return None
    if spec.kind == "rows" and spec.patch not in SIDES:
        return None
    sides = (spec.patch, spec.merge, spec.temporal) if spec.kind == "rows" else (1, 1, 1)
    return ImageKernel(spec.channels, code, spec.antialias, spec.rounding, spec.dtype, spec.kind, spec.layout, *sides)


class TensorKernel:
    """Launches `kernels.cuda.image_tiles` for a spec that has one; refuses images that it can't do.

    Parameters
    ----------
    spec : ImageSpec
        One for which `kernel_of` has a kernel.
    owner : str
        How a block knows its image; for measurements. See `ImageKernel`.
    """

    def __init__(self, spec: ImageSpec, owner: str = "block_search") -> None:
        kind = kernel_of(spec)
        assert kind is not None
        self._kind, self._item = kind._replace(owner=owner), spec.item
        self._normal = [*four(spec.gain), *four(spec.bias)]
        self._function: Any = None

    def load(self) -> None:
        """As of `Launcher`."""
        if self._function is None:
            cutting.load()
            self._function = function_of(_kernel(self._kind, _capability()), _limits()[0])

    def prepare(self, table: NDArray[Any], like: Launch | None = None) -> Launch | None:
        """As of `Launcher`."""
        if like is None:
            found = cutting.cut(self._kind, table, self._item, *_limits())
        else:
            found = cutting.cut_like(self._kind, table, self._item, like.cut)
        return None if found is None else Launch(self, found.blocks, found)

    def prepared(
        self, launch: Launch, count: int, *, grid: tuple[int, int] | None = None, **upload: Any
    ) -> PreparedLaunch:
        """As of `Launcher`; `grid` are blocks across and down, instead of all those of the launch across."""
        self.load()
        made: Cut = launch.cut
        cut = made.bands, made.steps, made.row_steps, made.slots
        values = [0, count, 0, *self._item, *cut, *self._normal]
        words = IMAGE_TILES.words(dict(zip(IMAGE_TILES.names, values, strict=True)))
        geometry = (*(grid or (launch.blocks, 1)), 1, 32 * made.warps, 1, 1)
        cuda = Cuda(self._function, geometry, current().device_id, made.shared)
        return PreparedLaunch(words, [(None, 2), (None, 0), (None, -1)], cuda, **upload)


@cache
def _kernel(kind: ImageKernel, capability: tuple[int, int]) -> Any:
    from octopus.backends.cuda import compile

    def build() -> Callable[..., Any]:
        from octopus.kernels.cuda import image_tiles

        return image_tiles.build(kind)

    return compile.load("images-tiles-" + "-".join(str(part).lower() for part in kind), build)


def _capability() -> tuple[int, int]:
    """Of the GPU in use: a kernel that was loaded for one may not run on another."""
    from octopus.backends.cuda.device import compute_capability

    return compute_capability()


def _limits() -> tuple[int, int]:
    """Bytes of shared memory that a block may have on the GPU in use, and its processors."""
    properties = current().properties
    return properties.max_shared_memory_per_block_optin, properties.multiprocessor_count
