"""Images on a GPU to the embeddings of their patches: what a row holds decides how many bytes are written and read.

The layer is that of a model of Qwen's kind, a `Conv3d` whose stride is its kernel, in bfloat16 with random weights. All
methods get the same images where they lie, and end with embeddings in bfloat16. The right answer is the same layer in
float32, of pixels that Pillow's filter gives in floating point and that are rounded to bytes once.

Layers. `device`: the rows alone, beside a copy of as many bytes as are read and written; the projection alone, from
rows that are there; and both. `host`: from a list of images to the synchronised embeddings. A CPU has none of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from math import nan, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import make_all, need_torch
from octopus_study.measure import Case, Method, Row
from octopus_study.measure.bandwidth import copying
from octopus_study.status import NO_ANSWER
from octopus_study.studies.comparison import Comparison, Part, compare
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.images.job import BATCHES, NORMAL, ONCE, ROWS, TEMPORAL, ImageJob, ImageMethod
from octopus_study.studies.images.libraries import Transformers
from octopus_study.studies.images.own import HALF_ULP, Octopus

PATCH_ROWS, PROJECTION, EMBEDDINGS = "patch_rows", "projection", "embeddings"
OFFSET = 128.0  # of bytes with a sign, which lie about 0 and so lose less to the rounding of folded weights


class Model(NamedTuple):
    """What its first layer takes and gives."""

    patch: int
    width: int  # values of an embedding
    parts: tuple[tuple[float, ...], tuple[float, ...]]  # mean and deviation per channel, in parts of the range


QWEN2_VL, QWEN3_VL = Model(14, 1280, NORMAL[ROWS]), Model(16, 1152, ((0.5,) * 3, (0.5,) * 3))
# Of each workload its batch and its model. Patches of 14 have rows of 588 values, which fast products don't take.
WORKLOADS = {"large": ("large", QWEN3_VL), "small": ("small", QWEN3_VL), "large-patch14": ("large", QWEN2_VL)}


@dataclass(frozen=True, eq=False)
class EmbeddingJob(ImageJob):
    """Make patch rows of images, and multiply them by a model's first layer."""

    model: Model = QWEN3_VL
    seed: int = 0

    @property
    def parts(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        return self.model.parts

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.starts[-1]), self.model.width)

    @cached_property
    def layer(self) -> Any:
        """The model's layer, as it is documented."""
        torch = need_torch(self.device, "baselines")
        torch.manual_seed(self.seed)
        kernel = (TEMPORAL, self.patch, self.patch)
        layer = torch.nn.Conv3d(3, self.model.width, kernel, stride=kernel)
        return layer.to(self.device, torch.bfloat16).requires_grad_(False)

    @cached_property
    def _right(self) -> NDArray[np.float32]:
        levels = np.rint(super().expected(ONCE))
        mean, std = (np.array(values, np.float32)[:, None] for values in self.normal)
        rows = ((levels.reshape(len(levels), 3, -1) - mean) / std).reshape(levels.shape)
        weight, bias = (
            values.float().cpu().flatten(1).numpy() for values in (self.layer.weight, self.layer.bias[None])
        )
        return (rows @ weight.T + bias).astype(np.float32)

    def expected(self, right: str) -> NDArray[np.float32]:
        """The embeddings of the checked images."""
        return self._right

    def picked(self, output: Any) -> NDArray[np.float32]:
        """Those of a result, on the host."""
        return self.taken(output)

    @property
    def tolerance(self) -> float:
        """What rounding the largest embedding to bfloat16 moves it by, and as much for the rows and the weights."""
        return 2 * HALF_ULP * float(np.abs(self._right).max())


class Embeddings(ImageMethod):
    """Rows, and their projection."""

    rows: Any = None
    job: EmbeddingJob

    def __init__(self, job: EmbeddingJob) -> None:
        super().__init__(job)
        self.torch = need_torch(job.device, "baselines")
        self.tolerance = job.tolerance

    def make_rows(self) -> None:
        """Make the rows, all that a user must do for a batch."""
        raise NotImplementedError

    def project(self) -> None:
        """From rows that are there to embeddings, whose memory PyTorch has at hand."""
        self.made = None
        self.made = self.layer(self.rows.to(self.torch.bfloat16))

    def layer(self, rows: Any) -> Any:
        """The model's layer on rows in bfloat16."""
        raise NotImplementedError

    def run(self) -> None:
        self.make_rows()
        self.project()

    def poison(self) -> None:
        """Write NaN over the embeddings and give their memory back, where the next ones will lie; drop the rows."""
        if self.made is not None:
            self.made.fill_(nan)
        self.made = self.rows = None

    def result(self, every: int = 1) -> NDArray[np.float32]:
        if self.made is None:  # the rows alone were made
            self.project()
        return super().result(every)

    def traffic(self) -> dict[str, float]:
        """Bytes for each image: of its rows, and of all that is read and written, but for the layer's weights."""
        return {"row_bytes": self.rows.nbytes / len(self.job.images)}


class Documented(Embeddings):
    """The model's own processor on the GPU, and its `Conv3d`."""

    name = "transformers"

    def __init__(self, job: EmbeddingJob) -> None:
        super().__init__(job)
        self._processor = Transformers(job)

    def make_rows(self) -> None:
        self.rows = None
        self._processor.run()
        self.rows = self._processor.made

    def layer(self, rows: Any) -> Any:
        patch = self.job.patch
        return self.job.layer(rows.view(-1, 3, TEMPORAL, patch, patch)).view(-1, self.job.model.width)


class Linear(Documented):
    """The same with a linear layer of the same weights, which is what transformers' fusion of patch embeddings makes of
    the convolution where it is asked to."""

    name = "transformers-linear"

    def __init__(self, job: EmbeddingJob) -> None:
        super().__init__(job)
        self._weight = job.layer.weight.flatten(1)

    def layer(self, rows: Any) -> Any:
        return self.torch.nn.functional.linear(rows, self._weight, self.job.layer.bias)


class Rows(Octopus):
    """Rows by a plan, into tensors of torch."""

    def __init__(self, job: EmbeddingJob, dtype: str, temporal: int, multiple: int) -> None:
        self.dtype, self.temporal, self.multiple = dtype, temporal, multiple
        self._torch = need_torch(job.device, "baselines")
        super().__init__(job)

    def options(self) -> dict[str, Any]:
        given = super().options() | {"temporal": self.temporal, "row_multiple": self.multiple}
        return given | ({"mean": None, "std": None} if self.dtype == "int8" else {})

    def room(self) -> Any:
        values = -(-3 * self.temporal * self.job.patch**2 // self.multiple) * self.multiple
        shape = (int(self.job.starts[-1]), values)
        return self._torch.empty(shape, dtype=getattr(self._torch, self.dtype), device=self.job.device)


class Folded(Embeddings):
    """Each patch once, in bfloat16, and a linear layer whose weights are summed over the two time steps."""

    name = "octopus"
    dtype, temporal, multiple = "bfloat16", 1, 8

    def __init__(self, job: EmbeddingJob) -> None:
        super().__init__(job)
        from octopus.torch import fold_patch_embed

        self.maker = Rows(job, self.dtype, self.temporal, self.multiple)
        self.layer = fold_patch_embed(
            job.layer, temporal=self.temporal, row_multiple=self.multiple, **self.normalisation()
        )
        self.rows = self.maker.made

    def normalisation(self) -> dict[str, Any]:
        """What the layer does in place of the rows."""
        return {}

    def make_rows(self) -> None:
        self.maker.run()

    def kernels(self) -> None:
        self.maker.kernels()
        self.project()

    def poison(self) -> None:
        """Rows become NaN, too, or -1 where they are bytes; the next ones are of the images as they are."""
        super().poison()
        self.rows, self.maker.runs = self.maker.made, 0
        self.rows.view(self.torch.uint8).fill_(0xFF)

    def traffic(self) -> dict[str, float]:
        rows, taken = self.rows.nbytes, 2 * self.rows.numel()  # made, and read by the product, in bfloat16
        cast, count = rows != taken, len(self.job.images)
        read = sum(image.nbytes for image in self.job.images) + cast * rows + taken
        written = rows + cast * taken + 2 * prod(self.job.shape)
        return super().traffic() | {"bytes_read": read / count, "bytes_written": written / count}


class Bytes(Folded):
    """Pixels as bytes less 128, and the normalisation folded into the layer; PyTorch casts them for its product, by
    `Tensor.to`."""

    name = "octopus-bytes"
    dtype = "int8"

    def normalisation(self) -> dict[str, Any]:
        mean, std = self.job.normal
        return {"mean": mean, "std": std, "offset": OFFSET}


class Twice(Folded):
    """Each patch twice, as the model's own rows have it, in bfloat16."""

    name = "octopus-bf16"
    temporal = TEMPORAL


class Float32(Twice):
    """The rows that the model's processor makes."""

    name = "octopus-float32"
    dtype = "float32"


class Unpadded(Folded):
    """Rows as long as a patch, whatever that is a multiple of."""

    name = "octopus-unpadded"
    multiple = 1


KINDS = {kind.name: kind for kind in (Folded, Bytes, Twice, Float32, Linear, Documented)}
PATCH_14 = {kind.name: kind for kind in (Folded, Unpadded)}


def kinds_of(workload: str) -> dict[str, type[Embeddings]]:
    """Methods of a workload by name; patches of 14 are there for the zeros behind their rows."""
    return PATCH_14 if WORKLOADS[workload][1].patch == 14 else KINDS


def bound_of(method: str) -> str:
    """Name of what copies as many bytes as a method's rows are made of and take."""
    return f"{method}-bound"


def parts(context: Context) -> Iterator[Part]:
    """One part per workload, on a GPU."""
    for workload in context.config.images.embeddings if context.device == "cuda" else ():
        case = context.case(workload, BATCHES[WORKLOADS[workload][0]].images)
        yield Part(_measure, tuple(comparisons(case)))


def comparisons(case: Case) -> Iterator[Comparison]:
    """Those on the device first: there a plan repeats its last launch, whose images are as they are."""
    every = tuple(kinds_of(case.workload))
    own = tuple(name for name in every if issubclass(kinds_of(case.workload)[name], Folded))
    yield Comparison(case, PATCH_ROWS, "device", (*own, *map(bound_of, own)))
    yield Comparison(case, PROJECTION, "device", every)
    yield Comparison(case, EMBEDDINGS, "device", own)
    yield Comparison(case, EMBEDDINGS, "host", every)


def _measure(context: Context, part: Part) -> Iterator[Row]:
    yield from _rows(context, part)
    empty_caches(context.device)


def _rows(context: Context, part: Part) -> Iterator[Row]:
    batch, model = WORKLOADS[part.case.workload]
    images = BATCHES[batch].cut(context.workload.frame, part.case.n, context.seed)
    job = EmbeddingJob(images, ROWS, context.device, model.patch, model, context.seed)
    chosen = [one for one in part.comparisons if context.measures(one.key)]
    makers = {
        name: partial(kind, job)
        for name, kind in kinds_of(part.case.workload).items()
        if any(name in one.methods and context.measures(one.key, name) for one in chosen)
    }
    made, missing = make_all(makers)
    for comparison in chosen:
        yield from _timed(context, comparison, made, missing, job)
    for name, method in made.items() if not context.process else ():
        yield from counts(part.case, name, method)


def _timed(
    context: Context, comparison: Comparison, made: dict[str, Embeddings], missing: dict[str, str], job: EmbeddingJob
) -> list[Row]:
    """Check each method, written over NaN, and time all."""
    methods, answers, missing = [], {}, dict(missing)
    for name in (name for name in comparison.methods if name in made):
        methods.append(timed(made[name], comparison.quantity, comparison.layer))
        made[name].poison()
        if comparison.quantity == PROJECTION:
            made[name].make_rows()
        answers[name] = job.check(methods[-1], made[name].right)
        if bound_of(name) in comparison.methods:
            nbytes = sum(image.nbytes for image in job.images) + made[name].rows.nbytes
            methods.append(Method(bound_of(name), copying(nbytes, job.on_gpu)))
            answers[bound_of(name)] = NO_ANSWER
    missing |= {bound_of(name): why for name, why in missing.items()}
    budget = context.budget_within(context.config.images.max_seconds)
    return compare(context, comparison, methods, answers, missing, budget=budget)


def timed(method: Embeddings, quantity: str, layer: str) -> Method:
    """What of a method is timed."""
    if quantity == PROJECTION:
        return method.timed(method.project)
    if quantity == PATCH_ROWS:
        assert isinstance(method, Folded)
        return method.timed(method.maker.kernels)
    return method.timed(method.kernels if layer == "device" else None)


def counts(case: Case, name: str, method: Embeddings) -> Iterator[Row]:
    """How far its embeddings lie from the right ones, in parts of the largest, and bytes for each image."""
    method.poison()
    method.run()
    found, right = method.result().astype(np.float64), method.job.expected(method.right)
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(right, axis=1)
    error = np.abs(found - right).max() / np.abs(right).max()
    yield case.row(name, "deterministic", "largest_error", "fraction", float(error))
    yield case.row(name, "deterministic", "cosine", "fraction", float(((found * right).sum(1) / lengths).min()))
    for quantity, nbytes in method.traffic().items():
        yield case.row(name, "deterministic", quantity, "bytes", nbytes)
