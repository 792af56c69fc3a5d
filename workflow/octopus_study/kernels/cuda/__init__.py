"""Kernels for CUDA."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent  # whose change compiles them anew
