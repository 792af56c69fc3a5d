"""Study `image_shape`: memory and time of three denoisers by the width of their input, and by the size of patches.

The published explanation of DRUNet's jumps in memory is cuDNN's choice of algorithm. The other one is that deepinv runs
an image in four quadrants where a side is no multiple of 8. Beside each width's memory stands how often the image was
split, and at one width of each kind the methods of `denoisers` change one thing at a time.

Memory is measured in a fresh process per model and step, or per method. Where there is no GPU, the splits are still
counted: shapes can be followed through the models without computing anything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Budget, Row, unavailable
from octopus_study.measure.rows import describe
from octopus_study.methods import AS_PUBLISHED, DRUNET_MULTIPLE
from octopus_study.peers.availability import Unavailable
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context
from octopus_study.studies.image_shape import denoisers, patches
from octopus_study.studies.image_shape.child import QUANTITIES, SPLITS, TIME, Order
from octopus_study.studies.image_shape.processes import measured
from octopus_study.studies.image_shape.settings import ImageShape

NO_GPU = "needs a GPU: the caching allocator of CUDA is what is measured"
INTERVENTIONS = "interventions"
NO_GPU_TIME = "needs a GPU: a CPU takes minutes for one image"
PUBLISHED_SPLIT, PUBLISHED_WHOLE = 1228, 1296  # the widths of the published jump
# Forwards of tens of ms that nothing else disturbs; they give a curve, and no verdict hangs on them.
FORWARD_BLOCKS, FORWARD_SECONDS, GIVE_UP_SECONDS = 5, 0.6, 5.0


def plan(context: Context) -> list[Part]:
    """Memory and time by width in processes of their own; then for each model the patches."""
    orders = _orders(context)
    widths = Part(partial(_widths, orders), tuple(_comparisons(orders)))
    models = context.config.image_shape.models
    return [
        widths,
        *(Part(partial(_patches, model), (patches.comparison_of(context, model),)) for model in models),
    ]


def _comparisons(orders: list[Order]) -> Iterator[Comparison]:
    """One for each quantity of each workload, at its first width."""
    methods: dict[str, list[str]] = {}
    for order in orders:
        methods.setdefault(order.workload, []).append(order.method)
    cases = {order.workload: order.case(order.widths[0]) for order in orders}
    for workload, case in cases.items():
        for layer, name, unit in QUANTITIES:
            yield Comparison(case, name, layer, tuple(methods[workload]), unit)


def _widths(orders: list[Order], context: Context, part: Part) -> list[Row]:
    torch, _ = denoisers.load(context.device)
    context.notes["cudnn"] = torch.backends.cudnn.version()
    if context.device == "cpu":
        return _counted(orders, context.config.image_shape.height)
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image.npy"
        np.save(image, _image(context))
        return measured([_placed(order, image) for order in orders], Path(folder))


def _placed(order: Order, image: Path) -> Order:
    """An order that finds its image, and keeps the results of those that are compared beside it."""
    results = str(image.parent) if order.workload.endswith(INTERVENTIONS) else ""
    return replace(order, image=str(image), results=results)


def _patches(model: str, context: Context, part: Part) -> list[Row]:
    denoisers.load(context.device)
    if context.device == "cpu":
        raise Unavailable(NO_GPU_TIME)
    return cover(model, context, part)


def cover(model: str, context: Context, part: Part) -> list[Row]:
    """Rows of the patches; too little memory for them must not cost all that was measured before."""
    try:
        return patches.cover_rows(context, part.comparisons[0], model, _image(context, square=True))
    except Exception as error:
        raise Unavailable(describe(error)) from error


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


def _orders(context: Context) -> list[Order]:
    """What each process measures: every model at the widths of every step, and the methods of those that may split."""
    settings, orders = context.config.image_shape, []
    for model in settings.models:
        orders += [
            _order(context, model, f"step{step}", AS_PUBLISHED, widths(settings, step))
            for step in settings.steps
        ]
        for number, method in enumerate(denoisers.METHODS if model in denoisers.SPLITTING else ()):
            order = _order(context, model, INTERVENTIONS, method, intervention_widths(settings))
            orders.append(replace(order, first_block=number * context.budget.max_blocks))
    return orders


def _order(context: Context, model: str, workload: str, method: str, columns: list[int]) -> Order:
    return Order(
        dataset=context.workload.dataset,
        workload=f"{model}-{workload}",
        model=model,
        method=method,
        widths=columns,
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
    rows: list[Row] = []
    models: dict[str, denoisers.Denoiser] = {}
    for order in orders:
        if order.model not in models:
            models[order.model] = denoisers.Denoiser(order.model, "meta", order.seed)
        denoiser = models[order.model]
        run = denoiser.runner(order.method)
        for width in order.widths:
            with denoiser.counted_splits() as splits:
                run(denoiser.empty(height, width))
            rows.append(order.case(width).row(order.method, *SPLITS, splits.calls))
        for quantity in QUANTITIES[1:]:
            reason = NO_GPU_TIME if quantity == TIME else NO_GPU
            rows.append(unavailable(order.case(order.widths[0]), order.method, *quantity, reason))
    return rows
