"""Images on their way into Qwen2-VL, by what is handed over: the processor as it is, in threads, compiled, in Rust, and
with its import changed; alone, and before the model's vision tower, which has the real architecture and random
weights."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from octopus_study.measure import Case, HostClock, Method, PowerCapKept, Row, available_cores
from octopus_study.peers.availability import Unavailable, need, need_torch
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.pictures import cut, log_uniform
from octopus_study.studies.pipelines.method import Step, compared, counted, made_of

INSTALL = "pip install -e './workflow[models]'"
PREPARE, STEP, COSINE, DIFFERING = "prepare", "model_step", "cosine", "values_differing"
MOST_OFF, MEAN_OFF = "decoded_most_off", "decoded_mean_off"
LEVEL = 1 / 255 / 0.26130258  # one level of a byte once normalised, by the least of the deviations
QUALITY = 92  # of JPEG
PILLOW, NUMPY, TENSORS, ON_GPU, FILES = INPUTS = ("pillow", "numpy", "torch", "torch-gpu", "jpeg")
TOWERS = ("octopus", "transformers")
CHROMA = "nvJPEG repeats chroma where Pillow interpolates it"


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
    "photos": Batch(8, (3024, 4032), (3024, 4032)),
}


def count_of(context: Context, name: str) -> int:
    """How many images a batch has on this device."""
    images = BATCHES[name].images
    return images if context.device == "cuda" else max(1, images // context.config.pipelines.cpu_part)


def images_of(context: Context, name: str) -> list[NDArray[np.uint8]]:
    """The images of a batch on this device, (height, width, 3)."""
    batch = BATCHES[name]
    sizes = log_uniform(batch.least, batch.largest, count_of(context, name), context.seed)
    return cut(context.workload.frame, sizes, context.seed)


def handed_over(form: str, images: Sequence[NDArray[np.uint8]], torch: Any) -> list[Any]:
    """Images as one kind of input."""
    if form == PILLOW:
        return [Image.fromarray(image) for image in images]
    if form == FILES:
        return [_stored(image) for image in images]
    if form == NUMPY:
        return list(images)
    tensors = [torch.from_numpy(image).permute(2, 0, 1).contiguous() for image in images]
    return [tensor.cuda() for tensor in tensors] if form == ON_GPU else tensors


def _stored(image: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def methods_of(context: Context, name: str, form: str) -> tuple[str, ...]:
    """Who makes rows of a batch and a kind of input."""
    several, gpu = BATCHES[name].images > 1, context.device == "cuda"
    return (
        "octopus", "transformers",
        *(["transformers-threads"] if several else []),
        *(["transformers-compiled"] if form in (TENSORS, ON_GPU) and not several else []),
        *(["hf-processors-rs"] if form != ON_GPU else []),
        *(["octopus-host-decoded"] if form == FILES and gpu else []),
        *(["octopus-cpu", "transformers-cpu"] if (name, form) == ("ragged", PILLOW) and gpu else []),
        *(["upload-only"] if form == TENSORS and gpu else []),
    )  # fmt: skip


def parts(context: Context) -> Iterator[Part]:
    """One part per batch and kind of input. The model's step is that of Pillow images, which most people hand over."""
    for name in context.config.pipelines.batches:
        for form in context.config.pipelines.inputs:
            if form == ON_GPU and context.device == "cpu":
                continue
            if name == "photos" and form not in (PILLOW, FILES):  # as cameras and Pillow have them
                continue
            count = count_of(context, name)
            case = Case(context.study, context.workload.dataset, f"model-{name}", count, form)
            prepare = Comparison(case, PREPARE, "host", methods_of(context, name, form))
            yield Part(partial(_measure, name=name), (prepare, *_further(case, context.device)))


def _further(case: Case, device: str) -> Iterator[Comparison]:
    """What is measured beside the processor's time: the model's step, and how far nvJPEG's pixels lie from Pillow's."""
    if case.input == PILLOW:
        yield Comparison(case, STEP, "host", TOWERS)
        for quantity in (DIFFERING, COSINE):
            yield Comparison(case, quantity, "deterministic", TOWERS[:1], "fraction")
    if case.input == FILES and device == "cuda":
        for quantity in (MOST_OFF, MEAN_OFF):
            yield Comparison(case, quantity, "deterministic", TOWERS[:1], "levels")


class Prepared(Step):
    """The processor of transformers as its documentation shows, from what is handed over to rows where the model is."""

    name = "transformers"
    tolerance = 1.01 * LEVEL  # a value that lies next to a half may be rounded to either side

    def __init__(self, images: list[Any], device: str) -> None:
        self.torch = need_torch(device, "peers")
        self.images, self.device = images, device
        module = need("transformers.models.qwen2_vl.image_processing_qwen2_vl", "transformers", INSTALL)
        self.processor = module.Qwen2VLImageProcessor()
        if getattr(self.processor, "backend", "") != "torchvision":
            raise Unavailable("this transformers has no processor that works on tensors; version 5 has")
        self.asked = {"device": "cuda"} if device == "cuda" and not self.on_cpu else {}
        self.grid: Any = None

    def run(self) -> None:
        """One call, with the rows brought to the model."""
        self.made = None
        self.made, self.grid = self.rows(self.opened(self.images))

    def opened(self, images: list[Any]) -> list[Any]:
        """Images that the processor takes; those of files are decoded."""
        return [_decoded(image) if isinstance(image, bytes) else image for image in images]

    def rows(self, images: list[Any]) -> tuple[Any, Any]:
        """Rows and grid of images."""
        found = self.processor(images=images, return_tensors="pt", **self.asked)
        return found["pixel_values"].to(self.device), found["image_grid_thw"]


def _decoded(content: bytes) -> Any:
    return Image.open(io.BytesIO(content)).convert("RGB")


class InThreads(Prepared):
    """The same in as many threads as there are cores, each with its share of the images."""

    name = "transformers-threads"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        count = min(available_cores(), len(images))
        ends = np.linspace(0, len(images), count + 1).astype(int).tolist()
        self._shares = [images[begin:end] for begin, end in itertools.pairwise(ends)]
        self._pool = ThreadPoolExecutor(count)

    def run(self) -> None:
        """A share each, and all rows together."""
        self.made = None
        found = list(self._pool.map(lambda images: self.rows(self.opened(images)), self._shares))
        self.made, self.grid = (self.torch.cat(parts) for parts in zip(*found, strict=True))


class Compiled(Prepared):
    """The same compiled by torch, as transformers' documentation shows: for one shape."""

    name = "transformers-compiled"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        self.processor = self.torch.compile(self.processor)


class InRust(Prepared):
    """hf-processors-rs, a processor of the same name in Rust, which works on the CPU with a thread per core."""

    name, on_cpu = "hf-processors-rs", True

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        module = need("hf_processors_rs", "hf-processors-rs", INSTALL)
        self._rust = module.Qwen2VLImageProcessor.from_dict(self.processor.to_dict())

    def opened(self, images: list[Any]) -> list[Any]:
        """It decodes files by itself."""
        return images

    def rows(self, images: list[Any]) -> tuple[Any, Any]:
        """Its arrays as tensors."""
        found = self._rust(images)
        rows, grid = (self.torch.from_numpy(found[name]) for name in ("pixel_values", "image_grid_thw"))
        return rows.to(self.device), grid


class PreparedOnHost(Prepared):
    """The processor on the CPU, as servers without a GPU to spare have it."""

    name, on_cpu = "transformers-cpu", True
    tolerance = 2.01 * LEVEL  # fixed point of as many bits or fewer, rounded after each pass


class Accelerated(Prepared):
    """The same processor from `octopus.integrations.transformers.accelerate`: the changed import. Files are read by
    `octopus.integrations.loader.read`, to where the processor works."""

    name = "octopus"
    decoded_on_host = False

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        from octopus.integrations.loader import read
        from octopus.integrations.transformers import accelerate

        self.processor, self._read = accelerate(self.processor), read
        if isinstance(images[0], bytes) and device == "cuda" and not self.decoded_on_host:
            self.why_different = CHROMA

    def opened(self, images: list[Any]) -> list[Any]:
        """Files on the GPU, or on the host by several threads."""
        if not isinstance(images[0], bytes):
            return images
        return self._read(images, "cpu" if self.decoded_on_host else self.device)


class HostDecoded(Accelerated):
    """Files decoded on the host, whose pixels are Pillow's."""

    name, decoded_on_host = "octopus-host-decoded", True


class AcceleratedOnHost(Accelerated, PreparedOnHost):
    """The changed import with the processor on the CPU."""

    name, on_cpu = "octopus-cpu", True


class UploadOnly(Step):
    """As many bytes from page-locked memory to the GPU, and nothing else: no way from the host is faster."""

    name = "upload-only"

    def __init__(self, images: list[Any], device: str) -> None:
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


KINDS: dict[str, Callable[[list[Any], str], Step]] = {
    kind.name: kind
    for kind in (
        Accelerated, HostDecoded, Prepared, InThreads, Compiled, InRust, AcceleratedOnHost, PreparedOnHost, UploadOnly,
    )
}  # fmt: skip


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
    prepare, *others = part.comparisons
    torch = need_torch(context.device, "peers")
    images = handed_over(part.case.input, images_of(context, name), torch)
    makers = {method: partial(KINDS[method], images, context.device) for method in prepare.methods}
    steps, missing = made_of(part, context, makers)
    original = Prepared(images, context.device)
    right = {False: _answer_of(original)}
    if context.device == "cuda" and any(step.on_cpu for step in steps.values()):
        right[True] = _answer_of(PreparedOnHost(images, context.device))
    if any(context.measures(prepare.key, step) for step in steps):
        yield from compared(
            context, prepare, steps, missing, lambda step: right.get(step.on_cpu, right[False])
        )
    if part.case.input == PILLOW:
        yield from _of_the_model(context, others, steps, original, right[False])
    elif others and not context.process:
        for comparison, reduce in zip(others, (np.max, np.mean), strict=True):
            yield from counted(comparison, {Accelerated.name: partial(_off, images, reduce)})
    del images, steps, original
    empty_caches(context.device)


def _of_the_model(
    context: Context,
    comparisons: Sequence[Comparison],
    steps: dict[str, Step],
    original: Prepared,
    right: NDArray[np.float32],
) -> Iterator[Row]:
    whole, differing, cosine = comparisons
    if not context.process and Accelerated.name in steps:
        yield from counted(
            differing, {Accelerated.name: partial(_differing, steps[Accelerated.name], original)}
        )
    if context.device == "cuda" and context.config.pipelines.tower:
        yield from _with_tower(context, whole, cosine, steps, right)
    elif not context.process:
        reason = "off in the configuration" if context.device == "cuda" else "takes minutes on a CPU"
        yield from (row for comparison in (whole, cosine) for row in comparison.gaps(f"the tower {reason}"))


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


def _off(images: list[bytes], reduce: Callable[[NDArray[np.int16]], float]) -> float:
    """The largest, or the mean, difference between pixels decoded on the GPU and on the host."""
    from octopus.integrations.loader import read

    pairs = zip(read(images, "cuda"), read(images, "cpu"), strict=True)
    off = [np.subtract(one.cpu().numpy(), other.numpy(), dtype=np.int16).ravel() for one, other in pairs]
    return float(reduce(np.abs(np.concatenate(off))))


def _least_cosine(one: WholeStep, other: WholeStep) -> float:
    """The least cosine between the embeddings of a merged patch."""
    one.run()
    other.run()
    left, right = (step.embeddings.double() for step in (one, other))
    cosines = (left * right).sum(1) / (left.norm(dim=1) * right.norm(dim=1))
    return float(cosines.min())
