"""Settings of the study `parity`."""

from __future__ import annotations

from pydantic import Field

from octopus_study.sections import Count, Section


class Parity(Section):
    """How far the results lie from those of other libraries."""

    count: Count = Field(100, description="boxes that are compared")
