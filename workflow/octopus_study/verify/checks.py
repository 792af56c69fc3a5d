"""The checks by name, and running them."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from octopus.errors import InputError
from octopus_study.verify import drawn, rebuilt, recomputed, stored
from octopus_study.verify.scene import Outcome, Scene

Check = Callable[[Scene], Outcome]
CHECKS: dict[str, Check] = {
    "digests": stored.digests,
    "rows": stored.rows,
    "selectors": stored.selectors,
    "numbers": rebuilt.numbers,
    "medians": recomputed.medians,
    "ratios": recomputed.ratios,
    "energies": recomputed.energies,
    "published": recomputed.published,
    "intervals": recomputed.intervals,
    "texts": recomputed.texts,
    "verdicts": rebuilt.verdicts,
    "tables": rebuilt.tables,
    "text": rebuilt.text,
    "axes": drawn.axes,
    "figures": rebuilt.pictures,
    "committed": rebuilt.committed,
}


class Result(NamedTuple):
    """A check by name with how it ended."""

    name: str
    outcome: Outcome

    @property
    def line(self) -> str:
        """The result in one line."""
        count, faults, note = self.outcome
        return f"{self.name:<10} {count - min(count, len(faults))} of {count} {note or 'identical'}"


def names(only: Iterable[str]) -> list[str]:
    """Return the names of some checks, of all where none is named."""
    wanted = list(only) or list(CHECKS)
    if unknown := [name for name in wanted if name not in CHECKS]:
        raise InputError(f"There is no check {', '.join(unknown)}; the checks are {', '.join(CHECKS)}.")
    return wanted


def run(scene: Scene, only: Iterable[str] = ()) -> Iterator[Result]:
    """Run checks one after the other; what one raises is its fault, and the others go on."""
    for name in names(only):
        try:
            outcome = CHECKS[name](scene)
        except Exception as error:  # a damaged file must not hide the other checks
            outcome = Outcome(1, [f"{type(error).__name__}: {error}"])
        yield Result(name, outcome)


def summary(results: list[Result], scene: Scene) -> str:
    """Say in one line how all checks ended, and against what they compared."""
    count = sum(result.outcome.count for result in results)
    wrong = sum(min(result.outcome.count, len(result.outcome.faults)) for result in results)
    what = f"{scene.paths.build}" if scene.is_built else "a report built for this, since there is none"
    failed = [result.name for result in results if result.outcome.faults]
    return f"{count - wrong} of {count} identical, against {what}" + (f"; red: {', '.join(failed)}" if failed else "")
