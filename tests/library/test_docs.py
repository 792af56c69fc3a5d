"""The examples in the library's docstrings run and print what they say."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
from importlib import import_module

import pytest

import octopus

MODULES = ("octopus", "octopus.blockmap", "octopus.images", "octopus.ops")


@pytest.mark.parametrize("name", [
    "octopus", "octopus.backends.cpu.threads", "octopus.blockmap", "octopus.crop.api",
    "octopus.crop.framestream", "octopus.images", "octopus.images.api", "octopus.images.plan", "octopus.images.sizes",
    "octopus.ops", "octopus.ragged.batch", "octopus.ragged.blockmap", "octopus.ragged.ops", "octopus.ragged.plan",
    "octopus.tiles.rules", "octopus.tiles.api", "octopus.crop.transforms",
])  # fmt: skip
def test_examples(name):
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


# A page, a package that it needs, which of its examples run, one after the other, and how many these are.
@pytest.mark.parametrize(("page", "package", "chosen", "count"), [
    ("crops", "torch", lambda code: "import torch" in code, 1), ("integrations/torch", "torch", bool, 3),
    ("integrations/loaders", "torch", bool, 3), ("ragged", "pyarrow", lambda code: "torch" not in code, 3),
    pytest.param("ragged", "octopus", lambda code: "pyarrow" not in code, 4, marks=pytest.mark.gpu),
])  # fmt: skip
def test_examples_of_a_page(root, page, package, chosen, count):
    pytest.importorskip(package)
    blocks = re.findall(r"```python\n(.*?)```", (root / f"docs/{page}.md").read_text(), flags=re.DOTALL)
    examples = list(filter(chosen, blocks))
    assert len(examples) == count
    exec("\n".join(examples), {"octopus": octopus})


def test_operators_of_torch():
    pytest.importorskip("torch")
    assert doctest.testmod(import_module("octopus.torch"))[:2] == (0, 4)


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_show_their_public_names_alone(name):
    module = import_module(name)
    shown = [name for name in dir(module) if not name.startswith("__")]
    assert sorted(module.__all__) == shown
    assert all(getattr(module, name) is not None for name in shown)


@pytest.mark.parametrize("code", [
    "from octopus.ops import multiply as found; import octopus; assert octopus.ops.multiply is found",
    "import octopus.ops; octopus.ops.blur3x3",
    "import octopus.images.api; octopus.images.resize, octopus.images.plan",
    "import octopus.blockmap as found; from octopus import blockmap; assert blockmap is found",
    "from octopus.blockmap import BlockMap, build", "from octopus import *; ops.gamma, blockmap.STRATEGIES",
])  # fmt: skip
def test_public_modules_are_imported_in_every_way(code):
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_type_checker_sees_no_names_made_up_at_run_time(root):
    """Otherwise it takes every misspelt name for a good one."""
    tree = ast.parse((root / "octopus/__init__.py").read_text())
    assert not [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
    with pytest.raises(AttributeError, match="no attribute 'crop_resise'"):
        octopus.crop_resise  # noqa: B018


def public_things():
    """Functions, classes and the methods that are no Python protocol, by their names for a user."""
    for module in map(import_module, MODULES):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isroutine(thing):
                yield f"{module.__name__}.{name}", thing
            if inspect.isclass(thing):
                for key, part in vars(thing).items():
                    part = getattr(part, "__func__", part)
                    if not key.startswith("_") and (inspect.isroutine(part) or isinstance(part, property)):
                        yield f"{module.__name__}.{name}.{key}", part


@pytest.mark.parametrize(("name", "thing"), [pytest.param(*pair, id=pair[0]) for pair in public_things()])
def test_docstrings_say_what_comes_back(name, thing):
    text = inspect.getdoc(thing)
    assert text
    if inspect.isroutine(thing) and inspect.signature(thing).return_annotation != "None":
        assert "Returns\n-------\n" in text
