"""The exceptions of the artifact, beside those of the library."""

from octopus.errors import OctopusError


class DataError(OctopusError, RuntimeError):
    """A data set is missing, damaged, or not what its checksum says."""


class NotHeldError(DataError):
    """A mirror or a file is sound as far as can be seen, and doesn't hold what was asked for."""


class Unavailable(OctopusError):  # noqa: N818 - a fact about a machine, nothing went wrong
    """A method can't take part on this machine; the message is the reason, as a row gives it."""


class MeasureError(OctopusError, RuntimeError):
    """A measurement can't be trusted or can't be made, so no number is given."""
