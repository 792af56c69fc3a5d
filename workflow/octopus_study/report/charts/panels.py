"""Panels of one figure in rows."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes


def grid(part: Any, count: int, columns: int = 2, **options: Any) -> list[Axes]:
    """Return `count` panels of a figure or a part of one, row by row; what is left of the last row is empty."""
    axes = part.subplots(-(-count // columns), columns, squeeze=False, **options).flat
    for axis in axes[count:]:
        axis.set_visible(False)
    return list(axes[:count])
