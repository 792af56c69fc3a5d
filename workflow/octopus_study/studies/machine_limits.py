"""Goes as soon as no study uses it: `limits` takes its place."""

from octopus_study.studies.limits import bandwidth

__all__ = ["bandwidth"]
