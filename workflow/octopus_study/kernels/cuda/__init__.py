"""Kernels for CUDA."""

from pathlib import Path

FOLDER = Path(__file__).parent  # whose change compiles them anew
