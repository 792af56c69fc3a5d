"""A folder of images of different size, decoded and resized by several processes or nodes with Ray Data.

    python examples/ray_images.py
    python examples/ray_images.py --folder /data/images --workers 8 --out batch.npy
    python examples/ray_images.py --folder /data/images --workers 8 --address auto

Each worker is an actor with a core, and a GPU or a share of one where there are some. It makes a batch of each block of
files. Blocks come back in order, and a check finds images that are lost, there twice, or out of place. Without a folder
images are made up; without Ray, or with `--workers 0`, this process does the work.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import octopus
from octopus import images

log = logging.getLogger("ray_images")
SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png", ".webp")
OPTIONS = {"filter": "bicubic", "rounding": "uint8", "scale": 255, "mean": 0.5, "std": 0.5}
Block = dict[str, Any]


class Resize:
    """Makes a batch of a block of files; Ray makes one of these in each worker."""

    def __init__(self, size: int, device: str) -> None:
        self.size, self.device = size, device

    def __call__(self, block: Block) -> Block:
        pictures = [cv2.imread(str(path)) for path in block["path"]]
        for path, picture in zip(block["path"], pictures, strict=True):
            if picture is None:
                raise ValueError(f"{path} can't be read as an image")
        made = images.resize(pictures, self.size, channels="BGR", source="HWC", device=self.device, **OPTIONS)
        pixels = made if self.device == "cpu" else made.copy_to_host()
        return {"place": block["place"], "pixels": pixels}


class RayWorker(Resize):
    """The same in an actor, which has one core."""

    def __init__(self, size: int, device: str) -> None:
        octopus.set_num_threads(1)
        cv2.setNumThreads(1)
        super().__init__(size, device)


def by_ray(ray: Any, blocks: list[Block], size: int, workers: int, address: str | None) -> Iterator[Block]:
    """The batches of all blocks, in order: this is what to copy."""
    import pyarrow

    ray.init(address, **({} if address else {"num_cpus": workers, "include_dashboard": False}))
    gpus = ray.cluster_resources().get("GPU", 0)
    ray.data.DataContext.get_current().execution_options.preserve_order = True  # else who is done first comes first
    dataset = ray.data.from_arrow([pyarrow.table(block) for block in blocks]).map_batches(
        RayWorker,
        fn_constructor_args=(size, "cuda" if gpus else "cpu"),
        batch_size=None,  # a block is a batch
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
        num_gpus=min(1, gpus / workers),
    )
    yield from dataset.iter_batches(batch_size=None)


def checked(batches: Iterable[Block], count: int) -> Iterator[Any]:
    """The pixels of all batches; raises `RuntimeError` where an image is lost, there twice, or out of place."""
    come = 0
    for batch in batches:
        places = batch["place"].tolist()
        if places != list(range(come, come + len(places))) or len(batch["pixels"]) != len(places):
            raise RuntimeError(f"expected images from {come} on, found {places}")
        come += len(places)
        yield batch["pixels"]
    if come != count:
        raise RuntimeError(f"expected {count} images, found {come}")


def blocks_of(folder: Path, size: int) -> list[Block]:
    """The files of a folder, in the order of their names, so many a block."""
    paths = [str(path) for path in sorted(folder.iterdir()) if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise SystemExit(f"{folder} has no files that end in {', '.join(SUFFIXES)}")
    parts = [range(len(paths))[begin : begin + size] for begin in range(0, len(paths), size)]
    return [{"place": np.array(part), "path": [paths[i] for i in part]} for part in parts]


def make_up(folder: Path, count: int) -> None:
    """JPEG images of any size."""
    random = np.random.default_rng(42)
    for number, (height, width) in enumerate(random.integers(64, 640, (count, 2)).tolist()):
        coarse = random.integers(0, 256, (8, 8, 3), np.uint8)
        cv2.imwrite(str(folder / f"{number:05}.jpg"), cv2.resize(coarse, (width, height)))


def found_ray() -> Any:
    """Ray with its Data library, or None and why it is not there."""
    try:
        import ray
        import ray.data
    except ImportError as error:
        log.info("without Ray, in this process alone: %s; pip install 'ray[data]'", error)
        return None
    return ray


def run(folder: Path, given: argparse.Namespace) -> None:
    """Make a batch of each block of a folder, and say how long it took."""
    blocks = blocks_of(folder, given.batch)
    count = sum(len(block["path"]) for block in blocks)
    ray = found_ray() if given.workers else None
    begin = time.perf_counter()
    if ray:
        batches = by_ray(ray, blocks, given.size, given.workers, given.address)
    else:
        batches = map(Resize(given.size, "cpu"), blocks)
    pixels = list(checked(batches, count))  # a model would take each as it comes
    seconds = time.perf_counter() - begin
    who = f"{given.workers} workers of Ray" if ray else "this process"
    log.info("%d images in %d batches by %s: none lost, none twice, all in order", count, len(pixels), who)
    log.info("%.1f s, with the start of the workers", seconds)
    if given.out:
        np.save(given.out, np.concatenate(pixels))


def main() -> None:
    """Read the command's words, and do it."""
    logging.basicConfig(format="%(message)s")
    log.setLevel(logging.INFO)  # of others, such as Numba, warnings alone
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="with images, where all nodes see it; default: made up")
    parser.add_argument("--images", type=int, default=60, help="so many are made up")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8, help="images of a block")
    parser.add_argument("--size", type=int, default=224, help="pixels of a side of the result")
    parser.add_argument("--address", help="of a Ray cluster that runs; default: one on this machine")
    parser.add_argument("--out", type=Path, help="where to write all batches as one array of NumPy")
    given = parser.parse_args()
    least = {"images": 1, "workers": 0, "batch": 1, "size": 1}
    if wrong := [f"--{name} {vars(given)[name]}" for name in least if vars(given)[name] < least[name]]:
        parser.error(f"found {', '.join(wrong)}; --workers must be at least 0, the others 1")
    if given.folder and not given.folder.is_dir():
        parser.error(f"--folder {given.folder} is no folder; name one with images, or leave it out to make some up")
    if given.out and not given.out.absolute().parent.is_dir():
        parser.error(f"--out {given.out} lies in no folder that exists; make it, or name another")
    if given.folder:
        run(given.folder, given)
        return
    with tempfile.TemporaryDirectory() as place:
        make_up(Path(place), given.images)
        run(Path(place), given)


if __name__ == "__main__":
    main()
