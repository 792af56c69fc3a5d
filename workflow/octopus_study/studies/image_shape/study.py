"""Study `image_shape`: memory and time of three denoisers by the width of their input, and by the size of patches.

The published explanation of DRUNet's jumps in memory is cuDNN's choice of algorithm. The other one is that deepinv runs
an image in four quadrants where a side is no multiple of 8. Beside each width's memory stands how often the image was
split, and at one width of each kind the methods of `denoisers` change one thing at a time. Memory is measured in a
fresh process per model and step, or per method. One image is also spread over two GPUs (`spread`), and convolutions are
timed below and beyond the L2 (`working_set`).
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.baselines.availability import Unavailable
from octopus_study.measure import Row
from octopus_study.measure.rows import describe
from octopus_study.names import AS_PUBLISHED, DRUNET_MULTIPLE
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import Context, empty_caches
from octopus_study.studies.image_shape import ImageShape, denoisers, forwards, patches, spread, working_set
from octopus_study.studies.image_shape.forwards import QUANTITIES, Order

NO_GPU = "needs a GPU: the caching allocator of CUDA is what is measured"
STEPS = 64, 68  # columns from one width to the next
PUBLISHED_JUMP = 1228, 1296  # from a width that is split to one that runs whole
# Forwards of tens of ms that nothing else disturbs; they give a curve, and no verdict hangs on them.
FORWARD_BLOCKS, FORWARD_SECONDS, GIVE_UP_SECONDS = 5, 0.6, 5.0


def plan(context: Context) -> list[Part]:
    """All widths of all models, whose processes run one after the other, and the patches of each model."""
    orders = _orders(context)
    comparisons = tuple(
        Comparison(order.case(order.widths[0]), name, layer, (order.method,), unit)
        for order in orders
        for layer, name, unit in QUANTITIES
    )
    models = context.config.image_shape.models
    tiled = [order for order in orders if order.workload.endswith("-spread")][:1]
    comparisons += tuple(
        Comparison(order.case(order.widths[0]), name, layer, (method,), unit)
        for order in tiled
        for method in spread.WAYS
        for layer, name, unit in spread.quantities(method)
    )
    return [
        Part(partial(_shapes, orders=orders, tiled=tiled), comparisons),
        Part(_working_set, working_set.comparisons(context)),
        *(Part(partial(_patches, model=model), patches.comparisons(context, model)) for model in models),
    ]


def _shapes(context: Context, part: Part, orders: Sequence[Order], tiled: Sequence[Order]) -> Iterator[Row]:
    """Every order in its process, then the tiles of one image."""
    torch = _torch(context)
    context.notes["cudnn"] = torch.backends.cudnn.version()
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "image.npy", _image(context))
        yield from forwards.in_processes(orders, Path(folder))
        for order in tiled:
            yield from spread.rows(order, Path(folder), torch.cuda.device_count())


def _torch(context: Context) -> Any:
    """PyTorch; `Unavailable` without a GPU, or where a package is missing."""
    if context.device == "cpu":
        raise Unavailable(NO_GPU)
    return denoisers.load(context.device)[0]


def _working_set(context: Context, part: Part) -> list[Row]:
    torch = _torch(context)
    from octopus_study.measure.cuda import l2_bytes

    empty_caches(context.device)
    return working_set.rows(context, part.comparisons, torch, l2_bytes())


def _patches(context: Context, part: Part, model: str) -> list[Row]:
    _torch(context)
    empty_caches(context.device)  # the model before left patches
    try:
        return patches.rows(context, part.comparisons, model, _image(context, square=True))
    except Exception as error:  # too little memory for the patches must not cost all that was measured before
        raise Unavailable(describe(error)) from error


def widths(settings: ImageShape, step: int) -> list[int]:
    """Columns of the images of one step."""
    least, greatest = settings.widths
    return list(range(least, greatest + 1, step))


def intervention_widths(settings: ImageShape) -> list[int]:
    """The measured widths next to the published ones: one that is split, one that runs whole."""
    known = sorted({width for step in STEPS for width in widths(settings, step)})
    kinds = [[width for width in known if bool(width % DRUNET_MULTIPLE) == split] for split in (True, False)]
    pairs = zip(kinds, PUBLISHED_JUMP, strict=True)
    return [min(some, key=lambda width: abs(width - aim)) for some, aim in pairs if some]


def _orders(context: Context) -> list[Order]:
    """What each process measures: every model at the widths of every step, and the methods of those that may split."""
    settings, budget = context.config.image_shape, context.budget_within(FORWARD_SECONDS)
    blocks, limit = min(budget.min_blocks, FORWARD_BLOCKS), min(budget.give_up_seconds, GIVE_UP_SECONDS)
    budget = replace(budget, min_blocks=blocks, give_up_seconds=limit)
    orders = []
    for model in settings.models:
        known = [(f"step{step}", AS_PUBLISHED, widths(settings, step)) for step in STEPS]
        if model in denoisers.SPLITTING:
            columns = intervention_widths(settings)
            known += [("interventions", method, columns) for method in denoisers.METHODS]
            known += [("spread", method, [min(spread.WIDTH, settings.widths[1])]) for method in spread.WHOLE]
        for kind, method, columns in known:
            where = (context.workload.dataset, f"{model}-{kind}", model, method)
            first = denoisers.METHODS.index(method) * context.budget.max_blocks
            orders.append(Order(*where, columns, budget, context.seed, first, kind in ("interventions", "spread")))
    return orders


def _image(context: Context, square: bool = False) -> NDArray[np.uint8]:
    """The frame, mirrored at its edges to the size of the largest image, (H, W, 3)."""
    settings = context.config.image_shape
    height, width = settings.height, settings.height if square else settings.widths[1]
    frame = context.workload.frame[:height, :width]
    margins = ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0))
    return np.pad(frame, margins, mode="symmetric")
