"""What the three operations on images are asked for beside images and sizes; passed on whole, also by plans."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

from octopus.arrays.checks import check_choice, checked_size, dtype_text, switch
from octopus.errors import InputError, shown
from octopus.images.sizes import Items, centred, checked_sizes, in_rows, letterboxed, on_their_own, stretched
from octopus.images.spec import ImageSpec, make_spec
from octopus.ragged.check import whole

LETTERBOX_PAD = 114.0  # the grey that detectors are trained with, as `crop_resize` has it


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Options:
    """What all operations share; `octopus.images.resize` says what each means.

    Raises
    ------
    InputError
        Says which option is wrong, what it is, and what it may be. Those that depend on the images are checked by
        `spec`.
    """

    kind: ClassVar[str]
    operation: ClassVar[str]
    filter: Any = "bilinear"
    antialias: Any = True
    rounding: Any = "none"
    mean: Any = None
    std: Any = None
    scale: Any = None
    dtype: Any = "float32"
    channels: Any = "RGB"
    source: Any = None

    def spec(self, dtype: str, channels: int) -> ImageSpec:
        """What this comes to for images of a dtype and a number of channels."""
        return make_spec(
            dtype, channels, self.kind, filter=self.filter, antialias=self.antialias, rounding=self.rounding,
            mean=self.mean, std=self.std, scale=self.scale, dtype=self.dtype, **self._own(),
        )  # fmt: skip

    @property
    def boxed(self) -> bool:
        """Whether the way back from letterboxed items is an answer, too."""
        return False

    @property
    def most(self) -> int | None:
        """Rows of every image, if a mask says which of them are its own."""
        return None

    def _own(self) -> dict[str, Any]:
        """Arguments of `make_spec` that not all operations have."""
        raise NotImplementedError

    def items(self, spec: ImageSpec, sides: Any, sizes: Any) -> Items:
        """What images of these sides (N, 2) become."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class ResizeOptions(Options):
    """Of `octopus.images.resize`."""

    kind, operation = "batch", "resize"
    size: Any
    layout: Any = "NCHW"
    letterbox: Any = False
    pad_value: Any = None
    crop: Any = None
    shortest: Any = None

    def __post_init__(self) -> None:
        letterbox = switch("letterbox", self.letterbox)
        if self.crop is not None:
            check_choice("crop", self.crop, ("center",))
        if letterbox and self.crop is not None:
            raise InputError("letterbox=True keeps all of an image and crop cuts it; ask for one of them")
        height, width = checked_size(self.size)
        if self.shortest is None and self.crop is not None and height != width:
            raise InputError(
                f'crop="center" to {height}x{width} needs shortest=, the length of the shorter side before the cut'
            )
        if self.shortest is not None:
            whole("shortest", self.shortest)
            if self.crop is None:
                raise InputError(f'shortest={shown(self.shortest)} needs crop="center", which cuts what is longer')
        if self.pad_value is not None and not letterbox and self.crop is None:
            raise InputError(
                f"pad_value={shown(self.pad_value)} was given, but nothing is padded with it; leave it out, or ask for "
                'letterbox=True or crop="center"'
            )

    def _own(self) -> dict[str, Any]:
        pad = LETTERBOX_PAD if self.letterbox and self.pad_value is None else self.pad_value
        return {"size": checked_size(self.size), "layout": self.layout, "pad_value": pad}

    @property
    def boxed(self) -> bool:
        """Whether the way back from letterboxed items is an answer, too."""
        return bool(self.letterbox)

    def items(self, spec: ImageSpec, sides: Any, sizes: Any) -> Items:
        """Items of one size."""
        if sizes is not None:
            raise InputError("resize makes items of the one size= that its plan was made with; pass no sizes")
        if self.letterbox:
            return letterboxed(spec, sides)
        if self.crop is None:
            return stretched(spec, sides)
        return centred(spec, sides, int(self.shortest or spec.item[0]))


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class EachOptions(Options):
    """Of `octopus.images.resize_each`."""

    kind, operation = "each", "resize_each"
    layout: Any = "NCHW"

    def __post_init__(self) -> None:
        if dtype_text(self.dtype, ("bfloat16",)) == "bfloat16":
            raise InputError("a RaggedBatch can't hold bfloat16; ask for float32 or float16, or for patch rows")

    def _own(self) -> dict[str, Any]:
        return {"layout": self.layout}

    def items(self, spec: ImageSpec, sides: Any, sizes: Any) -> Items:
        """Items of their own sizes."""
        return on_their_own(spec, checked_sizes(sizes, len(sides)))


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class RowOptions(Options):
    """Of `octopus.images.patch_rows`."""

    kind, operation = "rows", "patch_rows"
    filter: Any = "bicubic"
    rounding: Any = "uint8"
    patch: Any = 14
    merge: Any = None
    temporal: Any = None
    order: Any = "CTPP"
    max_rows: Any = None

    def __post_init__(self) -> None:
        if self.max_rows is not None:
            whole("max_rows", self.max_rows)

    def _own(self) -> dict[str, Any]:
        usual = 1 if self.order == "PPC" else 2
        merge, temporal = (usual if given is None else given for given in (self.merge, self.temporal))
        return {"layout": self.order, "patch": self.patch, "merge": merge, "temporal": temporal}

    @property
    def most(self) -> int | None:
        """Rows of every image, if a mask says which of them are its own."""
        return None if self.max_rows is None else int(self.max_rows)

    def items(self, spec: ImageSpec, sides: Any, sizes: Any) -> Items:
        """Patch rows."""
        return in_rows(spec, checked_sizes(sizes, len(sides), spec.factor), self.most)


OPERATIONS: dict[str, type[Options]] = {made.operation: made for made in (ResizeOptions, EachOptions, RowOptions)}


def options_of(operation: Any, options: dict[str, Any]) -> Options:
    """The options of an operation by its name."""
    check_choice("operation", operation, tuple(OPERATIONS))
    kind = OPERATIONS[operation]
    known = {field.name: field for field in fields(kind)}
    for name in options:
        check_choice(f"an option of {operation}", name, tuple(known))
    for name, field in known.items():
        if field.default is MISSING and name not in options:
            raise InputError(f"{operation} needs {name}=")
    return kind(**options)
