"""Mean brightness of the tiles of an image, and which of them are worth keeping."""

from __future__ import annotations

from typing import Any

from octopus.arrays import streams
from octopus.arrays.checks import Device
from octopus.arrays.memo import dynamo_disabled
from octopus.tiles.check import image_view
from octopus.tiles.plan import TilePlan
from octopus.tiles.rules import best_within, otsu_threshold

__all__ = ["TilePlan", "best_within", "keep_tiles", "otsu_threshold", "tile_means"]


@dynamo_disabled
def keep_tiles(
    image: Any,
    tiles: Any,
    threshold: float,
    *,
    scale: float | None = None,
    nodata: int | None = None,
    device: Device = "auto",
    stream: Any = None,
) -> tuple[Any, Any]:
    """Which tiles of an image are brighter than a threshold, all of them in one launch.

    A tile's brightness is that of NumPy's `image[y1:y2, x1:x2].mean() / scale`, bit for bit, on the CPU as on the GPU:
    sums of integers are exact whatever their order.

    Parameters
    ----------
    image : array, (H, W) or (H, W, C), uint8 or uint16
        NumPy, torch, CuPy, Numba, or anything with DLPack or `__cuda_array_interface__`; never copied where it already
        lies on the device that works. Rows may be further apart than their length. All channels count alike.
    tiles : array, (N, 4), integer
        `x1, y1, x2, y2` in pixels, a tile covers `[x1, x2) x [y1, y2)`; they may overlap. Also [], and the other forms
        that boxes of `octopus.crop_resize` may have. On the host, or with the
        image on the GPU also there (int32 or int64). Tiles on the GPU are not read by the host: each is clipped to the
        image, and one that is then empty has a mean of NaN.
    threshold : float
        A tile is kept if its brightness is above it; in units of `scale`.
    scale : float, optional
        What counts as 1; by default the largest value of the dtype, 255 or 65535. For the digital numbers of Sentinel-2
        give 10000.
    nodata : int, optional
        Values equal to it, in any channel, count in neither sum nor number. A tile without any other has a mean of NaN
        and is not kept. By default all values count.
    device : {"auto", "cpu", "cuda"}
        "auto" works where the image lies; for an image on the host, on the GPU if there is one.
    stream : optional
        A CUDA stream of any library, for work on a GPU only; default: the current one of the image's library. The call
        returns once the work is queued on it, except for an image on the host, whose result is waited for.

    Returns
    -------
    flags : array (N,) bool
    means : array (N,) float64
        The brightness in units of `scale`. Both on the image's side and of its library: tensors for a tensor.

    Raises
    ------
    InputError
        For bad input, before any work: an empty tile or one outside the image, a wrong shape, dtype or side, a stream
        for work on the CPU.
    DeviceError
        If `device="cuda"` and no GPU is usable.
    OutOfMemoryError
        If an image from the host, or what the tiles need, does not fit on the GPU.

    Examples
    --------
    >>> import numpy as np
    >>> image = np.array([[10, 30, 200], [20, 40, 220]], np.uint8)
    >>> flags, means = keep_tiles(image, [[0, 0, 2, 2], [2, 0, 3, 2]], 0.5, scale=250, device="cpu")
    >>> flags.tolist(), means.tolist()
    ([False, True], [0.1, 0.84])
    """
    plan = _plan(image, tiles, stream, scale=scale, nodata=nodata, device=device)
    return plan.run(image, threshold, stream=stream)


@dynamo_disabled
def tile_means(
    image: Any,
    tiles: Any,
    *,
    scale: float | None = None,
    nodata: int | None = None,
    device: Device = "auto",
    stream: Any = None,
) -> Any:
    """Brightness of each tile of an image.

    Parameters
    ----------
    image, tiles, scale, nodata, device, stream
        As in `keep_tiles`.

    Returns
    -------
    array (N,) float64
        In units of `scale`, on the image's side and of its library; NaN for a tile without data.

    Raises
    ------
    InputError, DeviceError, OutOfMemoryError
        As `keep_tiles`.

    Examples
    --------
    >>> import numpy as np
    >>> tile_means(np.array([[0, 51, 255]], np.uint8), [[0, 0, 2, 1], [2, 0, 3, 1]], device="cpu").tolist()
    [0.1, 1.0]
    """
    plan = _plan(image, tiles, stream, scale=scale, nodata=nodata, device=device)
    return plan.run(image, stream=stream)[1]


def _plan(image: Any, tiles: Any, stream: Any, **options: Any) -> TilePlan:
    """A plan that is run once, on the stream on which its memory is reserved, so that nothing waits for that."""
    model = image_view(image)
    if streams.device_for(model, options["device"], "image") == "cuda":
        stream = streams.stream_for(model, None, stream)
    return TilePlan(image, tiles, stream=stream, **options)
