"""The way to run a checked crop-and-resize call on the CPU."""

from __future__ import annotations

import numpy as np

from octopus.crop.spec import CropSpec


class CpuEngine:
    """Runs a spec with the Numba CPU kernels; holds no memory of its own."""

    def __init__(self, spec: CropSpec) -> None:
        self.spec = spec
        self._pad = _stored(spec.pad, spec.options.dtype)

    def run(
        self,
        frame: np.ndarray,
        boxes: np.ndarray,
        out: np.ndarray,
        frame_index: np.ndarray | None = None,
        transform: np.ndarray | None = None,
    ) -> None:
        """Fill `out` for float32 `boxes` (N, 4) on the host, and with `letterbox` the `transform` (N, 4).

        `frame` is (F, H, W, C) if `frame_index`, int32, chooses from it.
        """
        from octopus.kernels.cpu import crop

        if self.spec.kernel.pad_mode:
            raise NotImplementedError('the CPU side of outside="pad" comes with another branch')
        spec, options, rows = self.spec, self.spec.options, self._rows_of(out)
        height, width = options.size
        band = crop.band_rows(len(boxes), height)
        if spec.plain:
            crop.crop_resize(frame, boxes, rows, width, band, spec.gain, spec.bias)
            return
        if options.antialias:
            from octopus.kernels.cpu.antialias import crop_resize
        else:
            from octopus.kernels.cpu.options import crop_resize
        frames = frame if spec.frame.indexed else frame[None]
        index = np.zeros(len(boxes), np.int32) if frame_index is None else frame_index
        transforms = np.empty((0, 4), np.float32) if transform is None else transform
        crop_resize(
            frames, index, boxes, rows, transforms, band, spec.gain, spec.bias, self._pad,
            options.edge == "image", options.letterbox,
        )  # fmt: skip

    def _rows_of(self, out: np.ndarray) -> np.ndarray:
        """The result as (N, planes, rows, values per row); float16 as its bits, which Numba can store."""
        bits = out.view(np.uint16) if out.dtype == np.float16 else out
        if self.spec.options.layout == "NCHW":
            return bits
        height, width, channels = self.spec.item
        return bits.reshape(len(out), 1, height, width * channels)


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Float32 values as the CPU kernels store them: rounded and saturated to uint8, or the bits of a float16."""
    if dtype == "uint8":
        stored: np.ndarray = np.rint(values).clip(0, 255).astype(np.uint8)
        return stored
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return values.astype(np.float16).view(np.uint16)
    return values
