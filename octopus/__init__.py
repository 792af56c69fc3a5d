"""Octopus: one launch for batches whose items all differ in size."""

from __future__ import annotations

__version__ = "0.1.0"
