"""Study `image_shape`: memory and time of three denoisers by the width of their input, and by the size of patches.

The published explanation of DRUNet's jumps in memory is cuDNN's choice of algorithm. The other one is that deepinv runs
an image in four quadrants where a side is no multiple of 8. Beside each width's memory stands how often the image was
split, and at one width of each kind the ways of `denoisers` change one thing at a time.

Memory is measured in a fresh process per model and step, or per way. Where there is no GPU, the splits are still
counted: shapes can be followed through the models without computing anything.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Budget, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.methods import AS_PUBLISHED, DRUNET_MULTIPLE
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.context import Context
from octopus_study.studies.image_shape import denoisers, patches
from octopus_study.studies.image_shape.child import QUANTITIES, SPLITS, TIME, Order, gaps
from octopus_study.studies.image_shape.processes import measured
from octopus_study.studies.image_shape.settings import ImageShape

log = logging.getLogger(__name__)

NO_GPU = "needs a GPU: the caching allocator of CUDA is what is measured"
NO_GPU_TIME = "needs a GPU: a CPU takes minutes for one image"
PUBLISHED_SPLIT, PUBLISHED_WHOLE = 1228, 1296  # the widths of the published jump
# Forwards of tens of ms that nothing else disturbs; they give a curve, and no verdict hangs on them.
FORWARD_BLOCKS, FORWARD_SECONDS, GIVE_UP_SECONDS = 5, 0.6, 5.0


def rows(context: Context) -> list[Row]:
    """All rows of the study; progress goes to the log."""
    why = _missing(context)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        orders = _orders(context, folder)
        if why:
            found = [row for order in orders for row in gaps(order.case(order.widths[0]), order.method, why)]
        elif context.device == "cpu":
            found = _counted(orders, context.config.image_shape.height)
        else:
            np.save(folder / "image.npy", _image(context))
            found = measured(orders, folder)
    why = why or (NO_GPU_TIME if context.device == "cpu" else "")
    image = _image(context, square=True)
    for model in context.config.image_shape.models:
        found += patches.gaps(context, model, why) if why else _patches(context, model, image)
    return found


def _patches(context: Context, model: str, image: NDArray[np.uint8]) -> list[Row]:
    try:
        return patches.rows(context, model, image)
    except Exception as error:  # too little memory for the patches must not cost all that was measured before
        log.warning("patches, %s: %s", model, describe(error))
        return patches.gaps(context, model, describe(error))


def widths(settings: ImageShape, step: int) -> list[int]:
    """Columns of the images of one step."""
    least, greatest = settings.widths
    return list(range(least, greatest + 1, step))


def intervention_widths(settings: ImageShape) -> list[int]:
    """The measured widths next to the published ones: one that is split, one that runs whole."""
    known = sorted({width for step in settings.steps for width in widths(settings, step)})
    split = [width for width in known if width % DRUNET_MULTIPLE]
    whole = [width for width in known if not width % DRUNET_MULTIPLE]
    pairs = ((split, PUBLISHED_SPLIT), (whole, PUBLISHED_WHOLE))
    return [min(some, key=lambda width: abs(width - aim)) for some, aim in pairs if some]


def _missing(context: Context) -> str:
    """Why no model can be had here; empty if they can."""
    try:
        torch, _ = denoisers.load(context.device)
    except Unavailable as error:
        return str(error)
    context.notes["cudnn"] = torch.backends.cudnn.version()
    return ""


def _orders(context: Context, folder: Path) -> list[Order]:
    """What each process measures: every model at the widths of every step, and the ways of those that may split."""
    settings = context.config.image_shape
    found = []
    for model in settings.models:
        for step in settings.steps:
            found.append(_order(context, folder, model, f"step{step}", AS_PUBLISHED, widths(settings, step)))
        if model in denoisers.SPLITTING:
            chosen = intervention_widths(settings)
            ways = [_order(context, folder, model, "interventions", way, chosen) for way in denoisers.WAYS]
            found += [
                replace(order, first_block=number * context.budget.max_blocks, results=str(folder))
                for number, order in enumerate(ways)
            ]
    return found


def _order(
    context: Context, folder: Path, model: str, workload: str, method: str, columns: list[int]
) -> Order:
    return Order(
        dataset=context.workload.dataset,
        workload=f"{model}-{workload}",
        model=model,
        method=method,
        widths=columns,
        image=str(folder / "image.npy"),
        budget=asdict(_forward_budget(context)),
        seed=context.seed,
    )


def _forward_budget(context: Context) -> Budget:
    budget = context.budget_within(FORWARD_SECONDS)
    blocks, limit = min(budget.min_blocks, FORWARD_BLOCKS), min(budget.give_up_seconds, GIVE_UP_SECONDS)
    return replace(budget, min_blocks=blocks, give_up_seconds=limit)


def _image(context: Context, square: bool = False) -> NDArray[np.uint8]:
    """The frame, mirrored at its edges to the size of the largest image, (H, W, 3)."""
    settings = context.config.image_shape
    height, width = settings.height, settings.height if square else settings.widths[1]
    frame = context.workload.frame[:height, :width]
    margins = ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0))
    return np.pad(frame, margins, mode="symmetric")


def _counted(orders: list[Order], height: int) -> list[Row]:
    """How often the image is split at each width, and why there is nothing else."""
    found: list[Row] = []
    models: dict[str, denoisers.Denoiser] = {}
    for order in orders:
        if order.model not in models:
            models[order.model] = denoisers.Denoiser(order.model, "meta", order.seed)
        denoiser = models[order.model]
        run = denoiser.way(order.method)
        for width in order.widths:
            with denoiser.counted_splits() as splits:
                run(denoiser.empty(height, width))
            found.append(order.case(width).row(order.method, *SPLITS, splits.calls))
        found += _uncounted(order)
    return found


def _uncounted(order: Order) -> list[Row]:
    """One row for each quantity that only a GPU gives."""
    case = order.case(order.widths[0])
    missing = [(quantity, NO_GPU) for quantity in QUANTITIES if quantity not in (SPLITS, TIME)]
    return [
        unavailable(case, order.method, *quantity, why) for quantity, why in [*missing, (TIME, NO_GPU_TIME)]
    ]
