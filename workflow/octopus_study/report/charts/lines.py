"""Lines of numbers with their intervals over a count."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes

from octopus_study.report.charts import style
from octopus_study.report.frame import Number

Points = Sequence[tuple[float, Number]]


def line(axis: Axes, points: Points, scale: Callable[[float], float] = lambda x: 1.0, **look: Any) -> None:
    """Draw numbers times `scale` of their count; nothing where there are none. `look` is that of ``errorbar``."""
    if not points:
        return
    spans = [style.errors([number], scale(x)) for x, number in points]
    axis.errorbar(
        [x for x, _ in points],
        [scale(x) * number.value for x, number in points],
        yerr=[[span[side][0] for span in spans] for side in (0, 1)],
        **look,
    )


def counts(axis: Axes, shown: Sequence[float], **options: Any) -> None:
    """Make both axes logarithmic and mark the counts."""
    axis.set(xscale="log", yscale="log")
    axis.set_xticks(shown, [str(n) for n in shown], **options)
    axis.set_xticks([], minor=True)
