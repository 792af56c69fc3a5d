"""Calls of `octopus.images` and what they must answer: by the reference in float64, and a table for all devices."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from cases.crops import BOXED
from octopus import RaggedBatch, images
from octopus.images.spec import FIXED
from octopus_study.reference import images as reference

TAKEN = {"RGB": slice(None), "BGR": [2, 1, 0], "RGBA": [0, 1, 2], "BGRA": [2, 1, 0]}
TOPS = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
CLOSE = 1e-4  # of the full scale; on tensor cores a level is off by 0.006 before it is rounded
DEFAULTS = {
    "resize": {"filter": "bilinear", "rounding": "none"},
    "resize_each": {"filter": "bilinear", "rounding": "none"},
    "patch_rows": {"filter": "bicubic"},
}


class Pictures(NamedTuple):
    """A call: images on the host, the operation, sizes or the one of all, options, and how images are given."""

    images: list[np.ndarray]
    operation: str
    sizes: Any
    options: dict[str, Any]
    form: str = "list"

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that the reference has too."""
        return DEFAULTS[self.operation] | {"antialias": True, "dtype": "float32"} | self.options

    def right(self) -> np.ndarray:
        """Values in float64: not normalised, and rounded only by the rules that are exact."""
        given, asked = self.chosen, self.options
        taken = TAKEN[asked.get("channels", "RGB")]
        pixels = [channels_last(one, asked.get("source", "HWC"))[..., taken] for one in self.images]
        options = {name: given[name] for name in ("filter", "antialias")}
        options["rounding"] = given["rounding"] if given["rounding"] in FIXED else "none"
        if self.operation == "patch_rows":
            order, usual = asked.get("order", "CTPP"), 2 if asked.get("order", "CTPP") == "CTPP" else 1
            parts = asked.get("patch", 14), asked.get("merge", usual), asked.get("temporal", usual)
            return reference.rows(pixels, self.sizes, *parts, order=order, max_rows=asked.get("max_rows"), **options)
        options["layout"] = asked.get("layout", "NCHW")
        if self.operation == "resize_each":
            return reference.each(pixels, self.sizes, **options)
        sizes, corners = self.placed()
        pad = np.float64(asked.get("pad_value", 114.0 if asked.get("letterbox") else 0.0))
        return reference.batch(pixels, sizes, self.sizes, corners=corners, pad=pad, **options)

    def placed(self) -> tuple[list, list]:
        """Sizes of whole images, and the corners of their items in them."""
        sizes, corners = [], []
        for image in self.images:
            height, width = channels_last(image, self.options.get("source", "HWC")).shape[:2]
            size = tuple(self.sizes)
            if self.options.get("letterbox"):
                ratio = min((self.sizes[0], height), (self.sizes[1], width), key=lambda pair: pair[0] / pair[1])
                size = tuple(max(1, round(side * ratio[0] / ratio[1])) for side in (height, width))
                corners.append(tuple(-((item - side) // 2) for item, side in zip(self.sizes, size, strict=True)))
            elif self.options.get("crop"):
                shortest, least = self.options.get("shortest", self.sizes[0]), min(height, width)
                size = (int(shortest * height / least), int(shortest * width / least))
                corners.append(tuple(int((side - item) / 2) for side, item in zip(size, self.sizes, strict=True)))
            else:
                corners.append((0, 0))
            sizes.append(size)
        return sizes, corners

    def check(self, answer: Any) -> float:
        """The largest error of an answer on the host, as a part of the tolerance, which must not be above 1."""
        chosen, exact = self.chosen, self.right()
        found, *more = answer if isinstance(answer, tuple) else (answer,)
        rounding, dtype, source = chosen["rounding"], chosen["dtype"], self.images[0].dtype.name
        scale = float(chosen.get("scale") or 1)
        mean, std = (scale * float(chosen.get(name, default)) for name, default in (("mean", 0), ("std", 1)))
        if self.operation == "patch_rows":
            filled, multiple = exact.shape[-1], self.options.get("row_multiple", 1)
            assert found.shape[-1] == -(-filled // multiple) * multiple and not found[..., filled:].any()
            found = found[..., :filled]
        assert found.shape == exact.shape, (found.shape, exact.shape)
        found, byte = found.astype(np.float64), dtype in ("uint8", "int8")
        levels = rounding == "uint8" or byte
        right = (exact.clip(0, 255) if levels else exact) / std - mean / std - 128 * (dtype == "int8")
        if self.operation == "patch_rows" and "max_rows" in self.options:  # what pads is 0, and not normalised
            used = np.array([h * w for h, w in self.sizes]) // self.options["patch"] ** 2
            right[np.arange(right.shape[1]) >= used[:, None]] = 0
        error = np.abs(found - right)
        if levels and rounding not in FIXED:
            error = np.maximum(error - 0.5 / (1.0 if byte else std), 0)
            if dtype != "float16":
                whole = found if byte else found * std + mean
                assert np.abs(whole - np.rint(whole)).max(initial=0) < 1e-3 or "max_rows" in self.options
        limit = CLOSE * TOPS[source] / std + (np.abs(right) * 2.0**-11 if dtype == "float16" else 0)
        worst = float((error / limit).max(initial=0))
        assert worst <= 1, f"{worst} of the tolerance"
        self._check_rest(more)
        return worst

    def _check_rest(self, more: list) -> None:
        """The way back from letterboxed items; grids, masks and shapes of rows."""
        if self.options.get("letterbox"):
            sides = [channels_last(one, self.options.get("source", "HWC")).shape[:2] for one in self.images]
            back = [[w / c, h / r, x * w / c, y * h / r] for (h, w), (r, c), (y, x) in
                    zip(sides, *self.placed(), strict=True)]  # fmt: skip
            np.testing.assert_allclose(more[0], back, rtol=1e-5, atol=1e-4)
        elif self.operation == "patch_rows":
            parts = np.array(self.sizes) // self.options.get("patch", 14)
            if "max_rows" in self.options:
                mask, shapes = more
                assert mask.dtype == np.int32 and mask.sum(axis=1).tolist() == parts.prod(axis=1).tolist()
                assert shapes.tolist() == parts.tolist()
            else:
                assert more[0].dtype == np.int64 and more[0].tolist() == [[1, *pair] for pair in parts.tolist()]


def channels_last(image: np.ndarray, source: str) -> np.ndarray:
    """An image (H, W, C), wherever its channels are."""
    if image.ndim == 2:
        return image[..., None]
    return image if source == "HWC" else image.transpose(1, 2, 0)


SCENES = {
    "small": ([(9, 7), (5, 12), (20, 3)], [(4, 8), (12, 4), (8, 8)], (5, 6), 2),
    "large": (
        [(97, 143), (300, 90), (56, 56), (33, 640), (1, 1), (30, 7), (5, 900)],
        [(56, 112), (140, 84), (28, 28), (28, 280), (56, 56), (84, 28), (28, 196)], (40, 37), 14,
    ),
}  # fmt: skip
NORMAL = {"scale": 255, "mean": 0.5, "std": 0.25}


class Case(NamedTuple):
    """A row of the table: the operation, a dtype and number of channels, options, and how images are given."""

    operation: str
    kind: str
    options: dict[str, Any]
    form: str = "list"

    @property
    def name(self) -> str:
        parts = [f"{name}={value}" for name, value in self.options.items() if name not in ("mean", "std")]
        return "-".join([self.operation, self.kind, *parts, *[self.form] * (self.form != "list")])

    def check(self, scene: str, runner: Any) -> None:
        """Make the call by a runner, by the function and by a plan, and compare."""
        sides, sizes, size, patch = SCENES[scene]
        dtype, _, channels = self.kind.partition("x")
        random, top = np.random.default_rng(6), TOPS[dtype]
        given = [(random.random((*side, int(channels))) * (top + (top > 1))).astype(dtype) for side in sides]
        options = dict(self.options)
        if options.get("source") == "CHW":
            given = [np.ascontiguousarray(one.transpose(2, 0, 1)) for one in given]
        if self.operation == "patch_rows":
            options |= {"patch": patch, "rounding": options.get("rounding", "uint8")}
            options |= {"max_rows": 17 if scene == "small" else 77} if "max_rows" in options else {}
        if options.get("crop"):
            options["shortest"] = 7 if scene == "small" else 20
        call = Pictures(given, self.operation, size if self.operation == "resize" else sizes, options, self.form)
        for planned in (False, True) if scene == "large" else (len(self.name) % 2 == 0,):
            call.check(runner.images(call, planned))


def _table() -> list[Case]:
    cases = []
    filters = ("nearest", "bilinear", "bicubic", "lanczos")
    for filter, antialias, rounding in product(filters, (True, False), ("none", "uint8", "pillow")):
        if rounding != "pillow" or antialias:
            options = {"filter": filter, "antialias": antialias, "rounding": rounding}
            cases.append(Case("resize", "uint8x3", options | {"layout": ("NCHW", "NHWC")[len(cases) % 2]}))
    for layout, dtype in product(("NCHW", "NHWC"), ("float32", "float16", "uint8")):
        more = NORMAL if dtype != "uint8" else {"rounding": "pillow"}
        cases.append(Case("resize", "uint8x3", {"layout": layout, "dtype": dtype, "filter": "bicubic", **more}))
    for kind, form in product(("uint8x1", "uint8x4", "uint16x3", "float32x3"), ("list", "ragged")):
        cases.append(Case("resize", kind, {"filter": "bicubic"}, form))
    for kind, order, source in (
        ("uint8x3", "BGR", "HWC"), ("uint8x3", "BGR", "CHW"), ("uint8x4", "RGBA", "HWC"), ("uint8x4", "BGRA", "CHW"),
    ):  # fmt: skip
        cases.append(Case("resize", kind, {"channels": order, "source": source, **NORMAL}))
        cases.append(Case("patch_rows", kind, {"channels": order, "source": source, "rounding": "pillow", **NORMAL}))
    for filter, more in product(filters[1:], (BOXED, {"crop": "center"})):
        more = more | ({"rounding": "pillow"} if filter == "lanczos" else {})
        cases.append(Case("resize", "uint8x3", {"filter": filter, **more}))
    bytes_in_nhwc = {"layout": "NHWC", "pad_value": 9, "dtype": "uint8"}
    cases.append(Case("resize", "uint8x3", BOXED | bytes_in_nhwc))
    for layout, filter in product(("NCHW", "NHWC"), ("bilinear", "bicubic")):
        cases.append(Case("resize_each", "uint8x3", {"layout": layout, "filter": filter, **NORMAL}))
    forms = ({}, {"max_rows": 0}, {"dtype": "float16"})
    for order, rounding, more in product(("CTPP", "PPC"), ("uint8", "pillow", "none"), forms):
        cases.append(Case("patch_rows", "uint8x3", {"order": order, "rounding": rounding, **NORMAL, **more}))
    for order, dtype, more in (
        ("CTPP", "uint8", {"merge": 1}), ("CTPP", "int8", {"row_multiple": 8, "rounding": "none"}),
        ("PPC", "int8", {"row_multiple": 16, "max_rows": 0}), ("CTPP", "float16", {"row_multiple": 64, **NORMAL}),
        ("PPC", "float32", {"row_multiple": 5, "rounding": "pillow", **NORMAL}),
    ):  # fmt: skip
        cases.append(Case("patch_rows", "uint8x3", {"order": order, "temporal": 1, "dtype": dtype, **more}))
    return cases


CASES = {case.name: case for case in _table()}


def called(given: Any, call: Pictures, planned: bool, **more: Any) -> Any:
    """The answer of the function, or of a plan that is made for the call."""
    options = call.options | {name: value for name, value in more.items() if name != "out"}
    runs = {"out": more["out"]} if more.get("out") is not None else {}
    if not planned:
        answer = getattr(images, call.operation)(given, call.sizes, **options, **runs)
    else:
        total = int(np.prod(np.asarray(call.sizes).reshape(-1, 2), axis=1).sum())
        capacity = {"resize": {"size": call.sizes}, "resize_each": {"result_pixels": total + 3}}.get(call.operation, {})
        if call.operation == "patch_rows" and "max_rows" not in options:
            capacity = {"result_rows": total + 1}
        if more.get("device") == "cuda" and isinstance(given, list) and isinstance(given[0], np.ndarray):
            capacity["source_pixels"] = sum(one.size for one in given)
        model = given if isinstance(given, RaggedBatch) else given[0]
        plan = images.ImagePlan(call.operation, model, len(given) + 1, allocate=not runs, **capacity, **options)
        answer = plan.run(given, *() if call.operation == "resize" else (call.sizes,), **runs)
    return answer.values if isinstance(answer, RaggedBatch) else answer
