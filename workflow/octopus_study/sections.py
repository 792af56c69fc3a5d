"""What every section of the configuration is made of.

A study keeps its own section in its package.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Count = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Triple = tuple[float, float, float]


def ends_after(seconds: float) -> Any:
    """A key that says how long a comparison may go on."""
    return Field(seconds, description="seconds after which a comparison with its least number of blocks ends")


def _ascending(counts: list[int]) -> list[int]:
    if counts != sorted(set(counts)):
        raise ValueError(f"must be in ascending order without repeats, not {counts}")
    return counts


Counts = Annotated[list[Count], AfterValidator(_ascending)]


class Section(BaseModel):
    """Keys that are all known, and don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True)
