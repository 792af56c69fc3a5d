"""Operations on one item in float64, in plain NumPy: the definition against which all kernels are checked."""

import numpy as np
from numpy.typing import NDArray

BYTE = 255.0


def apply(operation: str, item: NDArray, first: float = 0.0, second: float = 0.0) -> NDArray[np.float64]:
    """The result of an operation of `octopus.ragged.ops` for one item (height, width; any shape for pointwise ones),
    not yet rounded to the dtype of the result. `first` and `second` are its parameters, as in
    `octopus.kernels.pixelwise`."""
    values = np.asarray(item, np.float64)
    if not values.size:
        return values
    if operation == "multiply":
        return values * first
    if operation == "normalize":
        return (values - first) * second
    if operation == "threshold":
        return (values > first).astype(np.float64)
    if operation == "gamma":
        scale = BYTE if item.dtype == np.uint8 else 1.0
        return scale * (values / scale) ** first
    return _mean(values, 3) if operation == "blur3x3" else _mean(values, 5) + 4 / 25 * _sobel(values)


def _shifted(values: NDArray, reach: int) -> dict[tuple[int, int], NDArray]:
    """The image moved by up to `reach` rows and columns; beyond the border the nearest pixel counts."""
    padded = np.pad(values, reach, mode="edge")
    height, width = values.shape
    steps = range(-reach, reach + 1)
    return {(y, x): padded[reach + y : reach + y + height, reach + x : reach + x + width] for y in steps for x in steps}


def _mean(values: NDArray, side: int) -> NDArray:
    return sum(_shifted(values, side // 2).values()) / side**2


def _sobel(values: NDArray) -> NDArray:
    """L1 norm of the gradient by Sobel's kernels."""
    at = _shifted(values, 1)
    weights = {-1: 1, 0: 2, 1: 1}
    across = sum(weight * (at[y, 1] - at[y, -1]) for y, weight in weights.items())
    down = sum(weight * (at[1, x] - at[-1, x]) for x, weight in weights.items())
    return abs(across) + abs(down)
