"""The examples in the library's docstrings run and print what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "octopus",
        "octopus.crop.api",
        "octopus.crop.plan",
        "octopus.crop.framestream",
        "octopus.ragged.batch",
        "octopus.tiles.plan",
        "octopus.tiles.rules",
        "octopus.tiles.api",
        "octopus.crop.transforms",
    ],
)
def test_examples(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_readme_examples_with_torch(root):
    pytest.importorskip("torch")
    blocks = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), flags=re.DOTALL)
    examples = [block for block in blocks if "import torch" in block]
    assert examples
    for example in examples:
        exec("import octopus\n" + example, {})
