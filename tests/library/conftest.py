"""What the library's tests share. They need the library, pytest and hypothesis, and skip what takes more packages."""

import gpu
import pytest


@pytest.fixture(scope="session")
def compiled():
    """Makes the tests of all combinations of types and options quick, see `gpu.compile_side_by_side`."""
    gpu.compile_side_by_side()
