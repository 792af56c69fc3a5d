"""Random images of any size and layout on the CPU, resized by every function: as the plain reference does it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dice import Dice
from guarded import READ, Guard

from octopus import RaggedBatch, images, set_num_threads
from octopus.images.spec import FIXED
from octopus_study.reference import images as reference

# Dtype of the images, channels, dtype of the result: a kernel each, and one more where Pillow's rounding is asked for;
# those of `test_images_cpu`, since each takes seconds to compile.
FORMS = (
    ("uint8", 3, "float32"), ("uint8", 3, "uint8"), ("uint8", 3, "float16"), ("uint8", 4, "float32"),
    ("uint8", 1, "float32"), ("uint16", 3, "float32"), ("float32", 3, "float32"),
)  # fmt: skip
PILLOW = FORMS[:3]
# Orders of channels by their number, and which of an image's channels the result has.
ORDERS = {1: ("RGB",), 3: ("RGB", "RGB", "BGR"), 4: ("RGB", "RGBA", "BGRA")}
TAKEN = {"RGB": slice(None), "BGR": [2, 1, 0], "RGBA": [0, 1, 2], "BGRA": [2, 1, 0]}
TOPS = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
CLOSE = 1e-4  # of the full scale


@dataclass
class Case:
    """Images in guarded memory, what is asked for, and by which door."""

    images: list[np.ndarray] = field(repr=False)
    operation: str
    sizes: Any
    options: dict[str, Any]
    door: str
    threads: int
    regions: list[Any] = field(repr=False)
    out: np.ndarray | None = field(repr=False, default=None)

    def __str__(self) -> str:
        given = "; ".join(f"{one.dtype} {one.shape} by {one.strides}" for one in self.images)
        asked = f"{self.operation} to {np.asarray(self.sizes).tolist()}, {self.options}"
        return f"{asked}, {self.door}, {self.threads} threads\n{given}"

    def check(self) -> float:
        """Call, and compare with the reference; returns the error as a part of the tolerance."""
        set_num_threads(self.threads)
        found, expected = self._call(), self._expected()
        assert found.shape == expected.shape, (found.shape, expected.shape)
        assert all(region.is_intact() for region in self.regions), "something was written beside an array"
        source, rounding, dtype = self.images[0].dtype.name, self.options["rounding"], self.options["dtype"]
        error = np.abs(found.astype(np.float64) - (expected.clip(0, 255) if self._in_levels else expected))
        if self._in_levels and rounding not in FIXED:
            assert np.array_equal(np.rint(found), found)
            error = np.maximum(error - 0.5, 0)
        limit = CLOSE * TOPS[source] + (np.abs(expected) * 2.0**-11 if dtype == "float16" else 0)
        worst = float((error / limit).max())
        assert worst <= 1, f"{worst} of the tolerance"
        return worst

    @property
    def _in_levels(self) -> bool:
        """Whether the answer is whole numbers, half a level off at most."""
        return self.options["rounding"] == "uint8" or self.options["dtype"] == "uint8"

    def _call(self) -> np.ndarray:
        given: Any = self.images
        if self.door == "ragged":
            given = RaggedBatch.from_list(given)
        options = {**self.options, "device": "cpu"}
        if self.door == "plan":
            return self._planned(given, options)
        made = getattr(images, self.operation)(given, self.sizes, out=self.out, **options)
        return self._values(made)

    def _planned(self, given: Any, options: dict[str, Any]) -> np.ndarray:
        total = int(np.prod(np.asarray(self.sizes).reshape(-1, 2), axis=1).sum())
        capacity = {"resize": {"size": self.sizes}, "resize_each": {"result_pixels": total + 3}}.get(
            self.operation, {}
        )
        if self.operation == "patch_rows" and "max_rows" not in options:
            capacity = {"result_rows": total + 1}
        plan = images.ImagePlan(
            self.operation, given[0], len(given) + 1, allocate=self.out is None, **capacity, **options
        )
        sizes = None if self.operation == "resize" else self.sizes
        return self._values(plan.run(given, sizes, out=self.out))

    def _values(self, made: Any) -> np.ndarray:
        if self.operation == "resize_each":
            return made.values
        return made[0] if isinstance(made, tuple) else made

    def _expected(self) -> np.ndarray:
        taken = TAKEN[self.options["channels"]]
        given = [channels_last(one, self.options["source"])[..., taken] for one in self.images]
        options = {name: self.options[name] for name in ("filter", "antialias")}
        options["rounding"] = self.options["rounding"] if self.options["rounding"] in FIXED else "none"
        if self.operation == "patch_rows":
            order, most = self.options["order"], self.options.get("max_rows")
            sides = (self.options["patch"], *((2, 2) if order == "CTPP" else (1, 1)))
            return reference.rows(given, self.sizes, *sides, order=order, max_rows=most, **options)
        options["layout"] = self.options["layout"]
        if self.operation == "resize_each":
            return reference.each(given, self.sizes, **options)
        if not self.options.get("crop"):
            return reference.batch(given, [self.sizes] * len(given), self.sizes, **options)
        side, sizes = self.options["shortest"], []
        for height, width, _ in (one.shape for one in given):
            least = min(height, width)
            sizes.append((int(side * height / least), int(side * width / least)))
        corners = [
            tuple(int((inner - item) / 2) for inner, item in zip(size, self.sizes, strict=True))
            for size in sizes
        ]
        return reference.batch(given, sizes, self.sizes, corners=corners, **options)


def channels_last(image: np.ndarray, source: str) -> np.ndarray:
    """An image (H, W, C), wherever its channels are."""
    if image.ndim == 2:
        return image[..., None]
    return image if source == "HWC" else image.transpose(1, 2, 0)


def warm_up() -> None:
    """Compile or load all kernels."""
    for form in FORMS:
        image = np.zeros((2, 2, form[1]), form[0])
        for rounding in ("none", *FIXED) if form in PILLOW else ("none",):
            images.resize([image], 1, dtype=form[2], rounding=rounding, device="cpu")


def make(dice: Dice, guard: Guard) -> Case:
    """Any call."""
    form = FORMS[dice.random.integers(len(FORMS))]
    source, channels, dtype = form
    sides, count = dice.pick((1, 8, 40, 90), (1, 2, 300)), int(dice.pick(1, 1, 2, 3, 5))
    first, regions, given = dice.few(0.4), [], []
    for number in range(count):
        side = [dice.upto(dice.pick(*sides)) for _ in range(2)]
        given.append(_image(dice, guard, f"image{number}", side, channels, np.dtype(source), first))
        regions.append(guard.last)
    order = dice.pick(*ORDERS[channels])
    rounding = dice.pick("none", "uint8", *FIXED) if form in PILLOW or order[3:] else "none"
    filter, antialias = dice.pick("bilinear", "bicubic", "lanczos", "nearest"), dice.few(0.7)
    options = {
        "filter": filter, "antialias": antialias or rounding in FIXED, "rounding": rounding, "dtype": dtype
    }  # fmt: skip
    options["source"], options["channels"] = "CHW" if first else "HWC", order
    operation = dice.pick("resize", "resize_each", "patch_rows")
    sizes = _sizes(dice, operation, count, options)
    alike = len({one.ndim for one in given}) == 1
    doors = ("call", "plan", "ragged")[: 2 + alike]
    case = Case(given, operation, sizes, options, dice.pick(*doors), int(dice.pick(1, 1, 2, 3)), regions)
    if dice.few(0.7):
        shape = case._expected().shape
        case.out = guard.array("out", shape, dtype, dice.few(0.6))
        regions.append(guard.last)
    return case


def _sizes(dice: Dice, operation: str, count: int, options: dict[str, Any]) -> Any:
    """Sizes of the result, and the options that go with them."""
    if operation == "patch_rows":
        options["patch"], options["order"] = int(dice.pick(1, 2, 3, 7, 14)), dice.pick("CTPP", "PPC")
        factor = options["patch"] * (2 if options["order"] == "CTPP" else 1)
        sizes = [(factor * dice.upto(4), factor * dice.upto(4)) for _ in range(count)]
        if dice.few(0.3):
            options["max_rows"] = max(h * w for h, w in sizes) // options["patch"] ** 2 + dice.upto(3) - 1
        return sizes
    options["layout"] = dice.pick("NCHW", "NHWC")
    if operation == "resize_each":
        return [(dice.upto(40), dice.upto(70)) for _ in range(count)]
    if dice.few(0.3):
        options["crop"], options["shortest"] = "center", dice.upto(12)
    return dice.upto(33), dice.upto(70)


def _image(
    dice: Dice, guard: Guard, name: str, sides: list[int], channels: int, dtype: np.dtype, first: bool
) -> np.ndarray:
    """An image whose first or last value touches the guard page; rows may be apart, and run backwards."""
    height, width = sides
    planes, row = (channels, width) if first else (1, width * channels)
    pitch = row + (dice.upto(9) if dice.few(0.3) else 0)
    flat = guard.array(name, (pitch * (height * planes - 1) + row,), dtype, dice.few(0.6))
    flat[:] = (dice.random.random(flat.size) * dice.pick(1.0, TOPS[dtype.name])).astype(dtype)
    item = dtype.itemsize
    if first:
        shape, steps = (channels, height, width), (pitch * height * item, pitch * item, item)
    else:
        shape, steps = (height, width, channels), (pitch * item, channels * item, item)
    image = np.lib.stride_tricks.as_strided(flat, shape, steps)
    if dice.few(0.2):
        image = image[..., :: dice.upto(4)] if first else image[:, :: dice.upto(4)]
    if channels == 1 and dice.few(0.5):
        image = image[0] if first else image[..., 0]
    elif dice.few(0.2):
        image = image[:, ::-1] if first else image[::-1, ::-1]
    if dice.few(0.3):
        image.flags.writeable = False
        guard.last.allow(READ)
    return image
