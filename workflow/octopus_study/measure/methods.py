"""What is timed, and the check that they compute the same thing before any of them is timed."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from octopus.errors import InputError
from octopus_study.measure.at_work import at_work
from octopus_study.measure.rows import describe
from octopus_study.status import NO_ANSWER, SAME, Answer, different, unavailable

if TYPE_CHECKING:
    import numpy as np

log = logging.getLogger(__name__)
_CHUNK = 1 << 16  # elements compared at a time: the float64 copies stay in the cache and are not mapped anew


@dataclass(frozen=True)
class Method:
    """One method of a comparison."""

    name: str  # value of the column `method`
    # Does the work once. Inputs and outputs are prepared outside; it must be repeatable.
    run: Callable[[], object]
    # Returns what the last `run` computed, as a NumPy array on the host. None where there is nothing to compare (a
    # bandwidth kernel, an empty launch).
    result: Callable[[], np.ndarray] | None = None
    # Largest accepted absolute difference from the reference, in the unit of the output
    tolerance: float = 0.0
    why_different: str = ""  # known reason for a different answer; it is added to the verdict

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tolerance) and self.tolerance >= 0):
            raise InputError(f"Method {self.name}: the tolerance must be finite and >= 0, found {self.tolerance}.")


def again(method: Method) -> Method:
    """Enter `method` a second time, as ``<name>-again``: the difference of the two is the noise floor."""
    return replace(method, name=f"{method.name}-again")


def check_answers(methods: Sequence[Method], reference: np.ndarray | None) -> dict[str, Answer]:
    """Run each method once and compare its result with the reference.

    The caller poisons the outputs beforehand, so that a method which writes nothing can't pass with old values. The
    reference is finite, or None where no method has a result. Answers are ``same``, ``different: why``, ``unavailable:
    why`` (it raised) or ``n/a`` (it has no result).
    """
    _require_distinct([method.name for method in methods])
    _require_reference(methods, reference)
    answers = {method.name: _answer(method, reference) for method in methods}
    for method in methods:
        answer = answers[method.name]
        if answer not in (SAME, NO_ANSWER):
            log.log(logging.INFO if method.why_different else logging.WARNING, "%s: %s", method.name, answer)
    return answers


def _answer(method: Method, reference: np.ndarray | None) -> Answer:
    try:
        with at_work(method.name):
            method.run()
            found = None if method.result is None else method.result()
        if found is None:
            return NO_ANSWER
        return _compared(found, reference, method)
    except Exception as error:  # any failure of a method is a row, never the end of the study
        return unavailable(describe(error))


def _compared(found: np.ndarray, reference: np.ndarray, method: Method) -> Answer:
    """Say how `found` departs from the reference."""
    if found.shape != reference.shape:
        return different(f"shape {found.shape}, expected {reference.shape}")
    if found.dtype != reference.dtype:
        return different(f"dtype {found.dtype}, expected {reference.dtype}")
    largest, not_finite = _largest_error(found, reference)
    if not_finite:
        return different(f"{not_finite} of {found.size} values are NaN or infinite")
    return different(method.why_different, largest, method.tolerance) if largest > method.tolerance else SAME


def _largest_error(found: np.ndarray, reference: np.ndarray) -> tuple[float, int]:
    """Return the largest absolute error over the finite values, and the count of the others."""
    import numpy as np

    largest, not_finite = 0.0, 0
    left, right = found.reshape(-1), reference.reshape(-1)
    for start in range(0, left.size, _CHUNK):
        part = left[start : start + _CHUNK].astype(np.float64)
        finite = np.isfinite(part)
        not_finite += int(part.size - finite.sum())
        error = np.abs(part - right[start : start + _CHUNK])
        largest = max(largest, float(error.max(initial=0.0, where=finite)))
    return largest, not_finite


def _require_distinct(names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(f"Methods need different names; found more than one {', '.join(repeated)}.")


def _require_reference(methods: Sequence[Method], reference: np.ndarray | None) -> None:
    """Refuse a reference against which nothing, or everything, would pass."""
    import numpy as np

    if not any(method.result for method in methods):
        return
    if reference is None:
        raise InputError("There are methods with a result but no reference to compare them with.")
    if not np.isfinite(reference).all():
        raise InputError("The reference answer contains NaN or infinity, so nothing can be compared with it.")
