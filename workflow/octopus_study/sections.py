"""What every section of the configuration is made of, and in which order the studies go.

A study keeps its own section in its `settings`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# As in the paper; a study that isn't named comes last.
_ORDER = (
    "stage_timing",
    "distribution",
    "arena",
    "parity",
    "power",
    "mapping",
    "total_cost",
    "sequences",
    "images",
    "pipelines",
    "satellite",
    "drone",
    "detector",
    "concurrency",
    "scaling",
    "image_shape",
)
Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Triple = tuple[float, float, float]


def _ascending(counts: list[int]) -> list[int]:
    if counts != sorted(set(counts)):
        raise ValueError(f"must be in ascending order without repeats, not {counts}")
    return counts


Counts = Annotated[list[Count], AfterValidator(_ascending)]


class Section(BaseModel):
    """Keys that are all known, and don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def in_order(studies: Iterable[str]) -> list[str]:
    """Sort names of studies as the paper goes."""
    return sorted(studies, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))
