"""What the library's tests share. They need the library, pytest and hypothesis, and skip what takes more packages."""

import sys

import fake_torch
import pretended
import pytest
from gpu import compile_side_by_side

import octopus
from octopus.arrays import views

gpu = pytest.fixture(pretended.installed)


@pytest.fixture(scope="session")
def compiled():
    """Makes the tests of all combinations of types and options quick, see `gpu.compile_side_by_side`."""
    compile_side_by_side()


@pytest.fixture
def set_threads():
    """`set_num_threads`, undone when the test ends."""
    before = octopus.get_num_threads()
    yield octopus.set_num_threads
    octopus.set_num_threads(before)


@pytest.fixture
def torch_without_gpu(monkeypatch):
    """`fake_torch` in the place of torch; `pretended.torch_installed` has its streams, too."""
    monkeypatch.setitem(sys.modules, "torch", fake_torch)
    views._family_of.cache_clear()
    yield fake_torch
    views._family_of.cache_clear()
