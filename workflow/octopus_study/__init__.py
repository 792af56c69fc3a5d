"""The artifact around Octopus: from data to measurements, and from their rows to figures, tables and the paper."""

__version__ = "0.2.0"
