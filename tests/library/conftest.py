"""What the library's tests share. They need the library, pytest and hypothesis, and skip what takes more packages."""

import gpu
import pytest

import octopus


@pytest.fixture(scope="session")
def compiled():
    """Makes the tests of all combinations of types and options quick, see `gpu.compile_side_by_side`."""
    gpu.compile_side_by_side()


@pytest.fixture
def set_threads():
    """`set_num_threads`, undone when the test ends."""
    before = octopus.get_num_threads()
    yield octopus.set_num_threads
    octopus.set_num_threads(before)
