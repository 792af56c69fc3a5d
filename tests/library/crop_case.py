"""One call of `crop_resize` or `CropPlan` on the CPU, compared with the reference in float64."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from octopus import CropPlan, InputError, crop_resize, set_num_threads
from octopus_study.reference import crops as reference

TOLERANCE = 2e-4  # of the frame's range: a fifth of what the library promises
TIE = 1e-3  # of a pixel: beside its edge the nearest one is decided by rounding
HALF_END = 65_520.0  # what is larger is infinite as float16
TOPS = {"uint8": 255.0, "uint16": 65535.0, "float32": 300.0, "nv12": 255.0, "p010": 255.0}


class Exported:
    """What offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        """The array's own."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """The host."""
        return self._array.__dlpack_device__()


@dataclass
class Case:
    """A call: arrays in guarded memory, options, and by which door."""

    frame: Any = field(repr=False)  # an array, NV12 or P010
    boxes: Any
    size: Any
    options: dict[str, Any]
    door: str
    threads: int
    out: np.ndarray | None = field(repr=False)
    regions: list[Any] = field(repr=False)

    def __str__(self) -> str:
        planes = [self.frame] if isinstance(self.frame, np.ndarray) else [self.frame.y, self.frame.uv]
        shape = f"{self.frame!r} of " if len(planes) > 1 else ""
        shape += " and ".join(f"{plane.dtype} {plane.shape} by {plane.strides} bytes" for plane in planes)
        state = f"writeable {planes[0].flags.writeable}, aligned {planes[0].flags.aligned}"
        boxes = np.asarray(self.boxes)
        return (
            f"frame {shape}, {state}\nboxes {boxes.dtype} {boxes.tolist()!r}\nsize {self.size}, {self.options}\n"
            f"{self.door}, {self.threads} threads"
        )

    @property
    def pixels(self) -> np.ndarray:
        """The frame as the reference takes it."""
        if isinstance(self.frame, np.ndarray):
            return reference.reordered(self.frame, self.options.get("channels", "RGB"))
        return reference.rgb_of_video(self.frame.y, self.frame.uv, *self.frame.coding[1:])

    def check(self) -> float | None:
        """Call, and compare with the reference."""
        boxes = _single(self.boxes)
        set_num_threads(self.threads)
        outside = self.options["outside"]
        if boxes.ndim == 2 and not all(usable(*box, self.pixels.shape, outside) for box in boxes.tolist()):
            self._is_refused()
            return None
        crops, transform = self._call()
        assert all(region.is_intact() for region in self.regions), "something was written beside an array"
        size = (self.size, self.size) if np.ndim(self.size) == 0 else tuple(int(side) for side in self.size)
        if transform is not None:
            self._compare_transform(transform, boxes, size)
        return self._compare(crops, boxes, size)

    def _call(self) -> tuple[np.ndarray, np.ndarray | None]:
        index, options = self.options["frame_index"], {**self.options, "device": "cpu"}
        frame = Exported(self.frame) if self.door.startswith("dlpack") else self.frame
        if "plan" in self.door:
            del options["frame_index"]
            room = len(self.boxes) + self.threads - 1
            plan = CropPlan(frame, room, self.size, allocate=self.out is None, **options)
            found = plan.run(frame, self.boxes, frame_index=index, out=self.out)
        else:
            found = crop_resize(frame, self.boxes, self.size, out=self.out, **options)
        if self.options["letterbox"]:
            return found
        return found, None

    def _is_refused(self) -> None:
        before = None if self.out is None else self.out.tobytes()
        try:
            self._call()
        except InputError as error:
            assert str(error).startswith("box "), error
        else:
            raise AssertionError("unusable boxes were taken")
        assert before is None or before == self.out.tobytes(), "a refused call has written"

    def _compare_transform(self, found: np.ndarray, boxes: np.ndarray, size: tuple[int, int]) -> None:
        frame = self.pixels if self.pixels.ndim == 3 else self.pixels[0]
        cut = boxes if self.options["outside"] == "pad" else reference.cut(boxes, frame)
        right = reference.transforms(cut, size)
        scale = np.abs(right).max(initial=1.0)
        assert np.allclose(found, right, rtol=1e-5, atol=1e-5 * scale), (found, right)

    def _compare(self, found: np.ndarray, boxes: np.ndarray, size: tuple[int, int]) -> float:
        """Largest error as a part of the tolerance, which must not be above 1."""
        given, pixels = self.options, self.pixels
        mean, std, scale, pad = (
            np.broadcast_to(
                np.ravel(np.float64(default if given.get(name) is None else given[name])), pixels.shape[-1]
            )
            for name, default in (("mean", 0), ("std", 1), ("scale", 1), ("pad_value", 114))
        )
        make, filter = reference.crop_resize, given.get("filter")
        names = ["layout", "outside", "pad_mode"] + ["filter"] * (filter is not None)
        if boxes.ndim == 3:
            make = reference.warp
        else:
            names += ["edge", "antialias", "letterbox"]

        chosen = {name: given[name] for name in names}
        if given["outside"] == "error":  # which takes no boxes that are cut
            chosen["outside"] = "clip"

        def of_reference(boxes: np.ndarray) -> np.ndarray:
            return make(
                pixels, boxes, size, mean * scale, std * scale, pad_value=pad,
                frame_index=None if pixels.ndim == 3 else np.asarray(given["frame_index"], int),
                **chosen,
            )  # fmt: skip

        right = of_reference(boxes)
        assert found.shape == right.shape and found.dtype == given["dtype"], (found.shape, found.dtype)
        if not right.size:
            return 0.0
        dtype = self.frame.dtype.name if isinstance(self.frame, np.ndarray) else self.frame.kind
        top = max(TOPS[dtype], np.abs(pad).max())
        limit = TOLERANCE * (top / (std * scale) + np.abs(mean / std)).max()
        if filter == "nearest":  # a sample on the edge of two pixels may take either
            for by in np.array([(x, y) for x in (-TIE, 0, TIE) for y in (-TIE, 0, TIE)]):
                moved = boxes + (np.tile(by, 2) if boxes.ndim == 2 else by[:, None] * [0, 0, 1])
                if boxes.ndim == 2:
                    inside = [usable(*box, pixels.shape, chosen["outside"]) for box in moved.tolist()]
                    moved = np.where(np.array(inside, bool)[:, None], moved, boxes)
                other = of_reference(moved)
                apart = [np.abs(found - _stored(values, given["dtype"])[0]) for values in (other, right)]
                right = np.where(apart[0] < apart[1], other, right)
        exact = right
        right, rounding = _stored(right, given["dtype"])
        with np.errstate(invalid="ignore"):
            error = (np.abs(found.astype(np.float64) - right) - rounding) / limit
        error[found == right] = 0  # also where both are infinite
        if given["dtype"] == "float16":  # between the largest number and infinity either is right
            error[(np.abs(np.abs(exact) - HALF_END) <= limit) & (np.abs(found) >= 65_504)] = 0
        worst = float(error.max(initial=0))
        assert worst <= 1, f"{worst} of the tolerance at {np.unravel_index(error.argmax(), error.shape)}"
        return worst


def _single(boxes: Any) -> np.ndarray:
    """Boxes as the library reads them."""
    with np.errstate(over="ignore"):
        single = np.asarray(boxes).astype(np.float32).astype(np.float64)
        return single if single.ndim == 3 else single.reshape(-1, 4)


def _stored(right: np.ndarray, dtype: str) -> tuple[np.ndarray, Any]:
    """What a result of a dtype should hold, and how far it may be from it by rounding."""
    if dtype == "uint8":
        return right.clip(0, 255), 0.5
    if dtype == "float16":
        step = np.spacing(np.abs(right).clip(0, 65_000).astype(np.float16)).astype(np.float64)
        return np.where(np.abs(right) < HALF_END, right, np.copysign(np.inf, right)), step / 2
    return right, 0.0


def usable(x1: float, y1: float, x2: float, y2: float, shape: tuple[int, ...], outside: str) -> bool:
    """The rule by which boxes on the host are taken."""
    height, width = shape[-3:-1]
    if not (np.isfinite([x1, y1, x2, y2]).all() and x1 < x2 and y1 < y2):
        return False
    if outside == "pad":
        return max(x2 - x1, y2 - y1) <= 16384 and max(map(abs, (x1, y1, x2, y2))) <= 2**24
    if outside == "error" and (x1 < 0 or y1 < 0 or x2 > width or y2 > height):
        return False
    return x1 < width and y1 < height and x2 > 0 and y2 > 0
