"""Images on their way into Qwen2-VL: the processor as it is, and with its import changed; alone, and before the model's
vision tower, whose architecture is the real one and whose weights are random."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Case, HostClock, Method, PowerCapKept, Row
from octopus_study.peers.availability import Unavailable, need, need_torch
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.pictures import cut, log_uniform
from octopus_study.studies.pipelines.method import Step, compared, counted, made_of

INSTALL = "pip install -e './workflow[models]'"
PREPARE, STEP, COSINE, DIFFERING = "prepare", "model_step", "cosine", "values_differing"
LEVEL = 1 / 255 / 0.26130258  # one level of a byte once normalised, by the least of the deviations
METHODS = ("octopus", "transformers", "octopus-cpu", "transformers-cpu", "upload-only")
TOWERS = METHODS[:2]


class Batch(NamedTuple):
    """Images of a model: how many on a GPU, and their least and largest height and width."""

    images: int
    least: tuple[int, int]
    largest: tuple[int, int]


BATCHES = {
    "one": Batch(1, (1080, 1920), (1080, 1920)),
    "ragged": Batch(32, (512, 512), (2048, 2048)),
    "small": Batch(256, (64, 64), (512, 512)),
    "documents": Batch(8, (2200, 1700), (2200, 1700)),
}


def images_of(context: Context, name: str) -> list[NDArray[np.uint8]]:
    """The images of a batch on this device, (height, width, 3)."""
    batch, settings = BATCHES[name], context.config.pipelines
    count = batch.images if context.device == "cuda" else max(1, batch.images // settings.cpu_part)
    sizes = log_uniform(batch.least, batch.largest, count, context.seed)
    return cut(context.workload.frame, sizes, context.seed)


def parts(context: Context) -> Iterator[Part]:
    """One part per batch."""
    for name in context.config.pipelines.batches:
        case = Case(context.study, context.workload.dataset, f"model-{name}", len(images_of(context, name)))
        yield Part(
            partial(_measure, name=name),
            (
                Comparison(case, PREPARE, "host", METHODS),
                Comparison(case, STEP, "host", TOWERS),
                Comparison(case, DIFFERING, "deterministic", TOWERS[:1], "fraction"),
                Comparison(case, COSINE, "deterministic", TOWERS[:1], "fraction"),
            ),
        )


class Prepared(Step):
    """The processor of transformers, from images on the host to rows where the model is."""

    name = "transformers"
    tolerance = 1.01 * LEVEL  # a value that lies next to a half may be rounded to either side

    def __init__(self, images: list[Any], device: str) -> None:
        self.torch = need_torch(device, "peers")
        self.images, self.device = images, device
        module = need("transformers.models.qwen2_vl.image_processing_qwen2_vl", "transformers", INSTALL)
        self.processor = module.Qwen2VLImageProcessor()
        if getattr(self.processor, "backend", "") != "torchvision":
            raise Unavailable("this transformers has no processor that works on tensors; version 5 has")
        if self.on_cpu and device == "cpu":
            raise Unavailable("on a CPU that is the method without -cpu")
        self.grid: Any = None

    def run(self) -> None:
        """The call that transformers' documentation shows, with the rows brought to the model."""
        self.made = None
        asked = {"device": "cuda"} if self.device == "cuda" and not self.on_cpu else {}
        found = self.processor(images=self.images, return_tensors="pt", **asked)
        self.made, self.grid = found["pixel_values"].to(self.device), found["image_grid_thw"]


class PreparedOnHost(Prepared):
    """The same with the processor on the CPU, as servers without a GPU to spare have it."""

    name, on_cpu = "transformers-cpu", True
    tolerance = 2.01 * LEVEL  # fixed point of as many bits or fewer, rounded after each pass


class Accelerated(Prepared):
    """The same processor from `octopus.integrations.transformers.accelerate`: the changed import."""

    name = "octopus"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        from octopus.integrations.transformers import accelerate

        self.processor = accelerate(self.processor)


class AcceleratedOnHost(Accelerated, PreparedOnHost):
    """The changed import with the processor on the CPU."""

    name, on_cpu = "octopus-cpu", True


class UploadOnly(Step):
    """As many bytes from page-locked memory to the GPU, and nothing else: no way from the host is faster."""

    name = "upload-only"

    def __init__(self, images: list[Any], device: str) -> None:
        if device == "cpu":
            raise Unavailable("a CPU has the images where they are")
        torch = need_torch(device, "peers")
        self._bytes = torch.empty(sum(image.numel() for image in images), dtype=torch.uint8, pin_memory=True)
        self._there = torch.empty_like(self._bytes, device=device)

    def run(self) -> None:
        """A copy, queued."""
        self._there.copy_(self._bytes, non_blocking=True)

    @property
    def timed(self) -> Method:
        """What has no answer."""
        return Method(self.name, self.run)


KINDS = (Accelerated, Prepared, AcceleratedOnHost, PreparedOnHost, UploadOnly)


class Tower:
    """The vision tower of Qwen2-VL in bfloat16, with random weights."""

    def __init__(self, torch: Any, seed: int) -> None:
        of = "transformers.models.qwen2_vl"
        modeling = need(f"{of}.modeling_qwen2_vl", "transformers", INSTALL)
        config = need(f"{of}.configuration_qwen2_vl", "transformers", INSTALL).Qwen2VLVisionConfig()
        torch.manual_seed(seed)
        with torch.device("cuda"):
            self._model = modeling.Qwen2VisionTransformerPretrainedModel(config).bfloat16().eval()
        self._torch = torch

    def __call__(self, rows: Any, grid: Any) -> Any:
        """Embeddings of all merged patches, (M, 3584)."""
        with self._torch.inference_mode():
            return self._model(rows.bfloat16(), grid_thw=grid.to(rows.device)).pooler_output


class WholeStep(Step):
    """A processor, and the tower behind it."""

    def __init__(self, prepared: Prepared, tower: Tower) -> None:
        self.name, self.tolerance = prepared.name, prepared.tolerance
        self._prepared, self._tower = prepared, tower
        self.embeddings: Any = None

    def run(self) -> None:
        """From images on the host to embeddings on the GPU."""
        self.embeddings = None
        self._prepared.run()
        self.embeddings = self._tower(self._prepared.made, self._prepared.grid)

    def answer(self) -> NDArray[np.float32]:
        """The rows, which are what may differ."""
        return self._prepared.answer()


def _measure(context: Context, part: Part, name: str) -> Iterator[Row]:
    prepare, whole, differing, cosine = part.comparisons
    torch = need_torch(context.device, "peers")
    # Contiguous planes, which the processor would make of anything else first.
    images = [torch.from_numpy(image).permute(2, 0, 1).contiguous() for image in images_of(context, name)]
    makers = {kind.name: partial(kind, images, context.device) for kind in KINDS}
    steps, missing = made_of(part, context, makers)
    rival = Prepared(images, context.device)
    right = {False: _answer_of(rival)}
    if any(step.on_cpu for step in steps.values()):
        right[True] = _answer_of(PreparedOnHost(images, context.device))
    if any(context.measures(prepare.key, step) for step in steps):
        yield from compared(context, prepare, steps, missing, lambda step: right[step.on_cpu])
    if not context.process and Accelerated.name in steps:
        yield from counted(differing, {Accelerated.name: partial(_differing, steps[Accelerated.name], rival)})
    if context.device == "cuda" and context.config.pipelines.tower:
        yield from _with_tower(context, whole, cosine, steps, right[False])
    elif not context.process:
        reason = "off in the configuration" if context.device == "cuda" else "takes minutes on a CPU"
        yield from (row for comparison in (whole, cosine) for row in comparison.gaps(f"the tower {reason}"))
    del images, steps, rival
    empty_caches(context.device)


def _with_tower(
    context: Context,
    whole: Comparison,
    cosine: Comparison,
    steps: dict[str, Step],
    right: NDArray[np.float32],
) -> Iterator[Row]:
    tower = Tower(need_torch("cuda", "peers"), context.seed)
    both = {name: WholeStep(step, tower) for name, step in steps.items() if name in TOWERS}
    missing = {name: "its processor can't be had here" for name in TOWERS if name not in both}
    if any(context.measures(whole.key, name) for name in both):
        # A model at work reaches the board's power limit by itself; and a second, untimed run of so much work would
        # take as long again, and warm nothing that a step of a second hasn't.
        clock = HostClock(context.host_clock().synchronize, PowerCapKept(context.throttle.rates))
        yield from compared(context, whole, both, missing, lambda step: right, clock)
    if not context.process and len(both) == len(TOWERS):
        yield from counted(cosine, {Accelerated.name: partial(_least_cosine, *both.values())})


def _answer_of(step: Step) -> NDArray[np.float32]:
    step.run()
    return step.answer()


def _differing(one: Step, other: Step) -> float:
    """Share of the rows' values that are not of the same byte."""
    one.run()
    other.run()
    return float(((one.made - other.made).abs() > LEVEL / 2).float().mean())


def _least_cosine(one: WholeStep, other: WholeStep) -> float:
    """The least cosine between the embeddings of a merged patch."""
    one.run()
    other.run()
    left, right = (step.embeddings.double() for step in (one, other))
    cosines = (left * right).sum(1) / (left.norm(dim=1) * right.norm(dim=1))
    return float(cosines.min())
