"""The examples in the library's docstrings run and print what they say."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "octopus",
        "octopus.crop",
        "octopus.cropplan",
        "octopus.framestream",
        "octopus.ragged",
        "octopus.tileplan",
        "octopus.tilerules",
        "octopus.tiles",
        "octopus.transforms",
    ],
)
def test_examples(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
