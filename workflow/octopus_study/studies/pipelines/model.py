"""Images on their way into Qwen2-VL, by what is handed over: the processor as it is, in threads, compiled, in Rust, and
with its import changed; alone, and before the model's vision tower, which has the real architecture and random
weights."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from octopus_study.baselines.availability import Unavailable, need, need_torch
from octopus_study.measure import Case, HostClock, PowerCapKept, Row, available_cores
from octopus_study.status import SAME, different
from octopus_study.studies.comparison import Comparison, Part, counted
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.pictures import Batch
from octopus_study.studies.pipelines.method import Step, compared, steps_of

INSTALL = "pip install -e './workflow[models]'"
PREPARE, STEP, COSINE, DIFFERING = "prepare", "model_step", "cosine", "values_differing"
MOST_OFF, MEAN_OFF = "decoded_most_off", "decoded_mean_off"
LEVEL = 1 / 255 / 0.26130258  # one level of a byte once normalised, by the least of the deviations
QUALITY = 92  # of JPEG
PILLOW, NUMPY, TENSORS, ON_GPU, FILES = INPUTS = ("pillow", "numpy", "torch", "torch-gpu", "jpeg")
TOWERS = ("octopus", "transformers")
CHROMA = "nvJPEG repeats chroma where Pillow interpolates it"


BATCHES = {
    "one": Batch(1, (1080, 1920), (1080, 1920)),
    "ragged": Batch(32, (512, 512), (2048, 2048)),
    "small": Batch(256, (64, 64), (512, 512)),
    "documents": Batch(8, (2200, 1700), (2200, 1700)),
    "photos": Batch(8, (3024, 4032), (3024, 4032)),
}


def input_of(form: str, images: Sequence[NDArray[np.uint8]], torch: Any) -> list[Any]:
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


def methods_of(name: str, form: str, count: int) -> tuple[str, ...]:
    """Methods for a batch and an input: of Pillow's images and of files all that people have. torch compiles for the
    sizes of the images, so that it compiles for one image; and several threads need several images."""
    every = form in (PILLOW, FILES)
    return (
        "octopus", "transformers",
        *(["transformers-threads"] if every and count > 1 else []),
        *(["transformers-compiled"] if form == PILLOW and name == "one" else []),
        *(["hf-processors-rs"] if every else []),
        *(["transformers-torchvision"] if form == FILES else []),
    )  # fmt: skip


def inputs_of(device: str, name: str, forms: Sequence[str]) -> list[str]:
    """Those of the inputs that a batch is measured with on a device; photographs are files, or Pillow opened them."""
    known = (PILLOW, FILES) if name == "photos" else INPUTS
    return [form for form in forms if form in known and (form != ON_GPU or device == "cuda")]


def parts(context: Context) -> Iterator[Part]:
    """One part per batch and input. The model's step is that of Pillow images, which most people pass."""
    device, settings = context.device, context.config.pipelines
    for name in settings.batches:
        count = BATCHES[name].number_on(device, settings.cpu_part)
        for form in inputs_of(device, name, settings.inputs):
            case = context.case(f"model-{name}", count, form)
            prepare = Comparison(case, PREPARE, "host", methods_of(name, form, count))
            yield Part(partial(_measure, name=name), (prepare, *_further(case, device)))


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
    on_cpu = False  # whether it works on the CPU, beside a GPU too
    tolerance = 1.01 * LEVEL  # a value that lies next to a half may be rounded to either side
    decoder = "cpu"  # where files are decoded, if both are possible

    def __init__(self, images: list[Any], device: str) -> None:
        self.torch = need_torch(device, "baselines")
        self.images, self.device = images, device
        module = need("transformers.models.qwen2_vl.image_processing_qwen2_vl", "transformers", INSTALL)
        self.processor = module.Qwen2VLImageProcessor()
        if getattr(self.processor, "backend", "") != "torchvision":
            raise Unavailable("this transformers has no processor that works on tensors; version 5 has")
        self.asked = {"device": "cuda"} if device == "cuda" and not self.on_cpu else {}
        self.grid: Any = None

    @property
    def judge(self) -> type[Prepared]:
        """The method whose answer is right: that of the same pixels, by the same processor where it works."""
        if self.on_cpu and self.device == "cuda":
            return PreparedOnHost
        files = isinstance(self.images[0], bytes)
        return Decoded if files and self.device == self.decoder == "cuda" else Prepared

    def run(self) -> None:
        self.made = None
        self.made, self.grid = self.rows(self.opened(self.images))

    def opened(self, images: list[Any]) -> list[Any]:
        return [_decoded(image) if isinstance(image, bytes) else image for image in images]

    def rows(self, images: list[Any]) -> tuple[Any, Any]:
        found = self.processor(images=images, return_tensors="pt", **self.asked)
        return found["pixel_values"].to(self.device), found["image_grid_thw"]


def _decoded(content: bytes) -> Any:
    return Image.open(io.BytesIO(content)).convert("RGB")


class Decoded(Prepared):
    """The same with files decoded by torchvision where the processor works: on a GPU by nvJPEG, else in a thread per
    core."""

    name, decoder = "transformers-torchvision", "cuda"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        self._pool = ThreadPoolExecutor(available_cores())

    def opened(self, images: list[Any]) -> list[Any]:
        from torchvision import io as files

        contents = [self.torch.frombuffer(bytearray(image), dtype=self.torch.uint8) for image in images]
        decode = partial(files.decode_jpeg, mode=files.ImageReadMode.RGB, device=self.device)
        return list(self._pool.map(decode, contents) if self.device == "cpu" else decode(contents))


class InThreads(Prepared):
    """The same in as many threads as there are cores, each with its share of the images and one thread of torch's."""

    name = "transformers-threads"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        count = min(available_cores(), len(images))
        ends = np.linspace(0, len(images), count + 1).astype(int).tolist()
        self._shares = [images[begin:end] for begin, end in itertools.pairwise(ends)]
        self._pool = ThreadPoolExecutor(count)

    def run(self) -> None:
        self.made, threads = None, self.torch.get_num_threads()
        found = list(self._pool.map(self._share, self._shares))
        self.torch.set_num_threads(threads)  # which the workers change for this thread, too
        self.made, self.grid = (self.torch.cat(parts) for parts in zip(*found, strict=True))

    def _share(self, images: list[Any]) -> tuple[Any, Any]:
        self.torch.set_num_threads(1)
        return self.rows(self.opened(images))


class Compiled(Prepared):
    """The same compiled by torch, as transformers' documentation shows: for one shape."""

    name = "transformers-compiled"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        self.processor = self.torch.compile(self.processor)


class InRust(Prepared):
    """hf-processors-rs, a processor of the same name in Rust, which works on the CPU with a thread per core."""

    name, on_cpu = "hf-processors-rs", True
    tolerance = 2.01 * LEVEL  # fixed point of as many bits or fewer, rounded after each pass

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        module = need("hf_processors_rs", "hf-processors-rs", INSTALL)
        self._rust = module.Qwen2VLImageProcessor.from_dict(self.processor.to_dict())

    def opened(self, images: list[Any]) -> list[Any]:
        return images

    def rows(self, images: list[Any]) -> tuple[Any, Any]:
        found = self._rust(images)
        rows, grid = (self.torch.from_numpy(found[name]) for name in ("pixel_values", "image_grid_thw"))
        return rows.to(self.device), grid


class PreparedOnHost(Prepared):
    """The processor on the CPU: the right answer of those who work there beside a GPU."""

    on_cpu = True


class Accelerated(Prepared):
    """The same processor from `octopus.integrations.transformers.accelerate`: the changed import. Files are read by
    `octopus.integrations.loader.read`, to where the processor works."""

    name, decoder = "octopus", "cuda"

    def __init__(self, images: list[Any], device: str) -> None:
        super().__init__(images, device)
        from octopus.integrations.loader import read
        from octopus.integrations.transformers import accelerate

        self.processor, self._read = accelerate(self.processor), read

    def opened(self, images: list[Any]) -> list[Any]:
        return self._read(images, self.device) if isinstance(images[0], bytes) else images


KINDS: dict[str, type[Prepared]] = {
    kind.name: kind for kind in (Accelerated, Prepared, InThreads, Compiled, InRust, Decoded)
}


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
        with self._torch.inference_mode():
            return self._model(rows.bfloat16(), grid_thw=grid.to(rows.device)).pooler_output


class WholeStep(Step):
    """A processor, and the tower behind it."""

    def __init__(self, prepared: Prepared, tower: Tower) -> None:
        self.name, self.tolerance = prepared.name, prepared.tolerance
        self._prepared, self._tower = prepared, tower
        self.embeddings: Any = None

    def run(self) -> None:
        self.embeddings = None
        self._prepared.run()
        self.embeddings = self._tower(self._prepared.made, self._prepared.grid)

    def result(self, every: int = 1) -> NDArray[np.float32]:
        return self._prepared.result()


def _measure(context: Context, part: Part, name: str) -> Iterator[Row]:
    yield from _rows(context, part, name)
    empty_caches(context.device)


def _rows(context: Context, part: Part, name: str) -> Iterator[Row]:
    prepare, *others = part.comparisons
    cut = BATCHES[name].cut(context.workload.frame, part.case.n, context.seed)
    images = input_of(part.case.input, cut, need_torch(context.device, "baselines"))
    makers = {method: partial(KINDS[method], images, context.device) for method in prepare.methods}
    steps, missing = steps_of(part, context, makers)
    right = cache(lambda kind: _answer_of(kind(images, context.device)))
    if any(context.measures(prepare.key, step) for step in steps):
        rows = compared(context, prepare, steps, missing, lambda step: right(step.judge))
        yield from (_told(row, steps.get(row.method.removesuffix("-again"))) for row in rows)
    if part.case.input == PILLOW:
        yield from _of_the_model(context, others, steps, Prepared(images, context.device))
    elif others and not context.process:
        for comparison, reduce in zip(others, (np.max, np.mean), strict=True):
            yield from counted(comparison, {Accelerated.name: partial(_off, images, reduce)})


def _told(row: Row, step: Prepared | None) -> Row:
    """A row of a method, which says where its pixels are others than Pillow's."""
    other = step is not None and step.judge is Decoded and row.status == SAME.status
    return row.answered(different(CHROMA)) if other else row


def _of_the_model(
    context: Context, comparisons: Sequence[Comparison], steps: dict[str, Prepared], original: Prepared
) -> Iterator[Row]:
    whole, differing, cosine = comparisons
    if not context.process and Accelerated.name in steps:
        yield from counted(differing, {Accelerated.name: partial(_differing, steps[Accelerated.name], original)})
    if context.device == "cuda" and context.config.pipelines.tower:
        yield from _with_tower(context, whole, cosine, steps, _answer_of(original))
    elif not context.process:
        reason = "off in the configuration" if context.device == "cuda" else "takes minutes on a CPU"
        yield from (row for comparison in (whole, cosine) for row in comparison.gaps(f"the tower {reason}"))


def _with_tower(
    context: Context, whole: Comparison, cosine: Comparison, steps: dict[str, Prepared], right: NDArray[np.float32]
) -> Iterator[Row]:
    tower = Tower(need_torch("cuda", "baselines"), context.seed)
    both = {name: WholeStep(step, tower) for name, step in steps.items() if name in TOWERS}
    missing = {name: "its processor is not available here" for name in TOWERS if name not in both}
    if any(context.measures(whole.key, name) for name in both):
        # A model at work reaches the board's power limit by itself; and a second, untimed run of so much work would
        # take as long again, and warm nothing that a step of a second hasn't.
        clock = HostClock(context.host_clock().synchronize, PowerCapKept())
        yield from compared(context, whole, both, missing, lambda step: right, clock)
    if not context.process and len(both) == len(TOWERS):
        yield from counted(cosine, {Accelerated.name: partial(_least_cosine, *both.values())})


def _answer_of(step: Step) -> NDArray[np.float32]:
    step.run()
    return step.result()


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
