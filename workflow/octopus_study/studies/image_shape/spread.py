"""One image denoised on one GPU, and in tiles over several GPUs of a host, with the memory of each.

The source spreads it with deepinv's own means, a process per GPU: `distribute` cuts the image in tiles with an overlap,
each process runs its share as one batch, and an all-reduce gives the whole image to all. Its one GPU runs the image
unchanged, in quadrants, since 1366 is no multiple of 8. `tiles` runs the same tiles on one GPU, and tells so what the
tiles change from what the second GPU does; `tiles-two-gpus-singly` runs one tile at a time.
"""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from octopus.errors import OctopusError
from octopus_study.baselines.availability import Unavailable, need
from octopus_study.measure import Row, unavailable
from octopus_study.measure.worker import Worker
from octopus_study.names import AS_PUBLISHED
from octopus_study.status import NO_ANSWER
from octopus_study.studies.image_shape import forwards
from octopus_study.studies.image_shape.denoisers import INSTALL, NOISE_LEVEL, Denoiser
from octopus_study.studies.image_shape.forwards import MEMORY, SPLITS, Order

log = logging.getLogger(__name__)

WIDTH = 1366
SECONDS = 120  # for one way: where one process fails, the others wait for it
TILE, OVERLAP = 448, 32  # in the source's configs/highres_imaging.yml
WHOLE = (AS_PUBLISHED, "padded-whole")  # without tiles, on one GPU
WAYS = {"tiles": (1, 0), "tiles-two-gpus": (2, 0), "tiles-two-gpus-singly": (2, 1)}  # GPUs; tiles per batch, 0 for all


def quantities(method: str) -> list[tuple[str, str, str]]:
    """Layer, name and unit of all that a way reads."""
    return [quantity for gpu in range(WAYS[method][0]) for quantity in _of_gpu(gpu)]


def _of_gpu(gpu: int) -> list[tuple[str, str, str]]:
    """What is read on one GPU: on the first what `forwards` reads, by the same names; on the others the peak alone."""
    if gpu:
        return [("memory", f"allocated_peak_gpu{gpu}", "bytes")]
    return [SPLITS, *(("memory", name, "bytes") for name in MEMORY)]


def rows(order: Order, folder: Path, gpus: int, target: str = f"{__name__}:share") -> Iterator[Row]:
    """The rows of all ways; behind the orders of `WHOLE`, with whose images in `folder` they are compared."""
    for method, (count, batch) in WAYS.items():
        way = replace(order, method=method)
        try:
            if gpus < count:
                raise Unavailable(f"needs {count} GPUs of one host, here is {gpus}")
            yield from _in_processes(way, folder, count, batch, target)
        except OctopusError as error:
            log.warning("%s: %s", method, error)
            case = way.case(way.widths[0])
            yield from (unavailable(case, method, *quantity, str(error)) for quantity in quantities(method))


def _in_processes(way: Order, folder: Path, count: int, batch: int, target: str) -> list[Row]:
    """The rows of one way: its processes wait for each other, so all are asked before one is heard."""
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port()}
    with ExitStack() as stack:
        workers = []
        for gpu in range(count):
            numbered = {"RANK": gpu, "LOCAL_RANK": gpu, **shared} if count > 1 else {}
            environment = {name: str(value) for name, value in numbered.items()}
            workers.append(stack.enter_context(Worker(f"the process of GPU {gpu}", environment)))
            workers[-1].tell(target, way, folder, batch, gpu)
        return [row for worker in workers for row in worker.hear(SECONDS)]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def share(way: Order, folder: Path, batch: int, gpu: int) -> list[Row]:
    """The rows of one GPU, in its process; all of a way must run equally often."""
    parallel = need("deepinv.distributed", "deepinv", INSTALL)
    image = np.load(folder / "image.npy")[:, : way.widths[0]]
    with parallel.DistributedContext() as context:  # makes this process's GPU the current one
        denoiser = Denoiser(way.model, "cuda", way.seed)
        tiling = {"patch_size": TILE, "overlap": OVERLAP, "tiling_dims": (-2, -1), "max_batch_size": batch}
        spread = parallel.distribute(denoiser.network, context, **tiling)

        def run(images: Any) -> Any:
            with denoiser.torch.no_grad():
                return spread(images, NOISE_LEVEL)

        first, _ = forwards.forward(denoiser, run, image)
        readings, result = forwards.forward(denoiser, run, image)
    readings["first_allocated_peak"] = first["allocated_peak"]
    if gpu:
        readings[f"allocated_peak_gpu{gpu}"] = readings["allocated_peak"]
    case, tiles = way.case(way.widths[0]), folder / "tiles.npy"
    if way.method == "tiles":
        np.save(tiles, result)
        answer = forwards.answer_of(way, folder / f"{way.workload}-{case.n}.npy", result)
    else:
        answer = forwards.answer_of(way, tiles, result)  # the same tiles give the same image, wherever they run
    return [
        case.row(way.method, layer, name, unit, readings[name], answer=NO_ANSWER if gpu else answer)
        for layer, name, unit in _of_gpu(gpu)
    ]
