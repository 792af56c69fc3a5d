"""The exceptions of the artifact, beside those of the library."""

from __future__ import annotations

from octopus.errors import OctopusError


class DataError(OctopusError, RuntimeError):
    """A data set is missing, damaged, or not what its checksum says."""


class NotHeldError(DataError):
    """A mirror or a file is sound as far as can be seen, and doesn't hold what was asked for."""


class MeasureError(OctopusError, RuntimeError):
    """A measurement can't be trusted or can't be made, so no number is given."""
