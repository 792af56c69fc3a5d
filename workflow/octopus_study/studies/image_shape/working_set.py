"""Time of DRUNet's convolutions at full resolution by the bytes of their input and output, below and beyond the L2.

The source says why more memory is not more speed: a working set beyond the L2 is read from memory again and again. Here
`LAYERS` convolutions of DRUNet's first level (3 x 3, 64 channels, with its ReLU) follow each other, so that each finds
the output of the one before in the L2, or doesn't. All else that a forward does, launches above all, is left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from octopus_study.measure import Method, Row, check_answers
from octopus_study.names import WORKING_SETS
from octopus_study.studies.comparison import Comparison, compare
from octopus_study.studies.context import Context
from octopus_study.studies.image_shape import forwards

CHANNELS, LAYERS = 64, 16
PIXEL_BYTES = 2 * CHANNELS * 4  # float32, input and output
# Of the L2. A tenth of it is left to weights and to what cuDNN holds.
SHARES = dict(zip(WORKING_SETS, (0.25, 0.5, 0.9, 2, 4, 16), strict=True))
BASE = "nearly-l2"


def comparisons(context: Context) -> tuple[Comparison, ...]:
    """Time, pixels and bytes of each size, and the size of the L2."""
    case, names = context.case("drunet-working-set", LAYERS), tuple(SHARES)
    return (
        Comparison(case, "convolutions", "device", names),
        Comparison(case, "pixels", "deterministic", names, "count"),
        Comparison(case, "working_set", "memory", names, "bytes"),
        Comparison(case, "cache", "memory", ("l2",), "bytes"),
    )


def rows(context: Context, compared: Sequence[Comparison], torch: Any, l2: int) -> list[Row]:
    """All sizes in paired blocks; the corner that all have in common must come out the same."""
    times, pixels, sets, cache = compared
    sides = {name: max(isqrt(int(share * l2) // PIXEL_BYTES) // 8 * 8, 8) for name, share in SHARES.items()}
    rng, greatest = np.random.default_rng(context.seed), max(sides.values())
    image = rng.random((1, CHANNELS, greatest, greatest), np.float32)
    weight = rng.standard_normal((CHANNELS, CHANNELS, 3, 3), np.float32) * np.float32((2 / (9 * CHANNELS)) ** 0.5)
    weights = torch.from_numpy(weight).to(context.device)
    corner = max(min(sides.values()) - LAYERS, 1)  # which no lower or right edge reaches
    methods = []
    for name, side in sides.items():
        chain = Chain(torch, weights, torch.from_numpy(np.ascontiguousarray(image[..., :side, :side])), context.device)
        methods.append(Method(name, chain, partial(chain.corner, corner)))
    expected = chain.corner(corner)
    tolerance = forwards.TOLERANCE * float(np.abs(expected).max())
    answers = check_answers([replace(method, tolerance=tolerance) for method in methods], expected)
    counted = [(pixels, {name: LAYERS * side**2 for name, side in sides.items()})]
    counted += [(sets, {name: PIXEL_BYTES * side**2 for name, side in sides.items()}), (cache, {"l2": l2})]
    facts = [each.case.row(name, each.layer, each.quantity, each.unit, value)
             for each, values in counted for name, value in values.items()]  # fmt: skip
    budget = context.budget_within(context.config.image_shape.max_seconds)
    return [*facts, *compare(context, times, methods, answers, clock=forwards.clock(), budget=budget, base=BASE)]


class Chain:
    """The convolutions, one after the other: two buffers take turns."""

    def __init__(self, torch: Any, weights: Any, images: Any, device: str) -> None:
        self._torch, self._weights, self._images = torch, weights, images.to(device)

    def __call__(self) -> Any:
        values = self._images
        with self._torch.no_grad():
            for _ in range(LAYERS):
                values = self._torch.nn.functional.conv2d(values, self._weights, padding=1).relu_()
        return values

    def corner(self, side: int) -> NDArray[np.float32]:
        """The upper left corner of the output, (64, side, side)."""
        return np.asarray(self()[0, :, :side, :side].cpu().numpy())
