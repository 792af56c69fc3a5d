"""A folder of JPEG images, each of its own size, read by a DataLoader and made a batch for SigLIP: where the images are
resized, and by whom."""

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from octopus import images as of_images
from octopus.backends.cpu import set_num_threads
from octopus.integrations.loader import ragged
from octopus_study.baselines.availability import need, need_torch
from octopus_study.measure import Row, available_cores
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.pictures import Batch
from octopus_study.studies.pipelines.method import Step, compared, steps_of, thinned

LOADED = "loaded"
BATCH, SIDE = 32, 224
IMAGES = Batch(BATCH, (256, 256), (1024, 1024))
LEVEL = 1 / 255 / 0.5
OPTIONS = {"filter": "bicubic", "scale": 255, "mean": 0.5, "std": 0.5, "source": "HWC"}
# torchvision rounds after each pass on a CPU alone; Pillow's passes are the same on any device, hardly a level off.
ROUNDINGS = {"cpu": "torch", "cuda": "pillow12"}


class Folder:
    """Images of a folder, as a data set of torch: decoded to (height, width, 3) where they are asked for."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        pixels: Any = cv2.imread(str(self.paths[index]))
        return pixels[..., ::-1].copy()


def one_thread(_: int) -> None:
    """A worker is one of several, each with a thread of its own."""
    set_num_threads(1)
    cv2.setNumThreads(1)


def resized(pictures: list[NDArray[np.uint8]]) -> Any:
    """The batch made by Octopus in the worker."""
    import torch

    made = of_images.resize(pictures, SIDE, device="cpu", rounding=ROUNDINGS["cpu"], **OPTIONS)
    return torch.from_numpy(made)


class Processed:
    """The batch made by the model's processor in the worker."""

    def __init__(self) -> None:
        module = need("transformers.models.siglip.image_processing_siglip", "transformers")
        self._processor = module.SiglipImageProcessor()

    def __call__(self, pictures: list[NDArray[np.uint8]]) -> Any:
        import torch

        planes = [torch.from_numpy(picture).permute(2, 0, 1) for picture in pictures]
        return self._processor(images=planes, return_tensors="pt")["pixel_values"]


class Loaded(Step):
    """All images of the folder, once, as batches where the model is."""

    tolerance = 3.01 * LEVEL

    def __init__(self, folder: Folder, workers: int, device: str) -> None:
        torch = self.torch = need_torch(device, "baselines")
        self.device = device
        self._loader = torch.utils.data.DataLoader(
            folder, BATCH, num_workers=workers, collate_fn=self.collate(), worker_init_fn=one_thread,
            pin_memory=device == "cuda", persistent_workers=True, multiprocessing_context="spawn",
        )  # fmt: skip

    def collate(self) -> Any:
        """What makes a batch of a worker's images."""
        raise NotImplementedError

    def run(self) -> None:
        self.made = self.torch.cat([self.placed(batch) for batch in self._loader])

    def placed(self, batch: Any) -> Any:
        return batch.to(self.device, non_blocking=True)


class OnDevice(Loaded):
    """Workers decode alone, and Octopus resizes the ragged batch in one launch where the model is; on a CPU in them."""

    name = "octopus"

    def collate(self) -> Any:
        return resized if self.device == "cpu" else ragged

    def placed(self, batch: Any) -> Any:
        if self.device == "cpu":
            return batch
        there = batch.to("cuda", non_blocking=True)
        return of_images.resize(there, SIDE, rounding=ROUNDINGS["cuda"], **OPTIONS)


class Transformers(Loaded):
    """The processor in the workers, as its documentation shows."""

    name = "transformers"

    def collate(self) -> Any:
        return Processed()


KINDS = (OnDevice, Transformers)


def parts(context: Context) -> Iterator[Part]:
    """One part for each number of workers, of which no core gets two."""
    settings = context.config.pipelines
    for workers in sorted({min(workers, available_cores()) for workers in settings.loader_workers}):
        case = context.case(f"loader-{workers}-workers", settings.loader_images)
        methods = tuple(kind.name for kind in KINDS)
        yield Part(partial(_measure, workers=workers), (Comparison(case, LOADED, "host", methods),))


def _measure(context: Context, part: Part, workers: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder = Folder(written(context, Path(place), part.case.n))
        makers = {kind.name: partial(kind, folder, workers, context.device) for kind in KINDS}
        steps, missing = steps_of(part, context, makers)
        processor = Processed()
        right = np.concatenate([processor([folder[index]]).numpy() for index in range(len(folder))])
        yield from compared(context, part.comparisons[0], steps, missing, lambda step: thinned(right))


def written(context: Context, place: Path, count: int) -> list[Path]:
    """JPEG images of sizes of their own in a folder."""
    paths = [place / f"{index:05}.jpg" for index in range(count)]
    for path, image in zip(paths, IMAGES.cut(context.workload.frame, count, context.seed), strict=True):
        cv2.imwrite(str(path), image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 92])
    return paths
