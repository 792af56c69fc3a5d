"""What all stand-ins promise: their pages run, other versions are told, and nothing is imported unasked."""

import re
import subprocess
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest

from octopus.errors import MissingPackageError
from octopus.integrations import common

# By the module: another package of its page, how many examples that has, and how near it says that answers are.
PAGES = {
    "transformers": ("torchvision", 5, lambda tests: f" {100 * tests.SHARE['float']:g} %"),
    "ultralytics": ("cv2", 3, lambda tests: f"off to {100 * tests.SHARE:g} %"),
    "rapidocr": ("onnxruntime", 2, lambda tests: ""),
    "sahi": ("sahi", 2, lambda tests: ""),
    "supervision": ("supervision", 2, lambda tests: ""),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_the_docs(root, name):
    """Its examples run one after the other, and it names the versions."""
    beside, count, near = PAGES[name]
    for package in (name, beside):
        pytest.importorskip(package, reason=f"{package} is not installed")
    text = (root / f"docs/integrations/{name}.md").read_text()
    tested = import_module(f"octopus.integrations.{name}").TESTED
    versions = " (to|and) ".join(map(re.escape, sorted({tested[0], tested[-1]})))
    assert re.search(f"{name} {versions}", text, re.IGNORECASE)
    assert near(import_module(f"test_{name}")) in text
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(examples) >= count
    with warnings.catch_warnings():
        exec("\n".join(examples), {})


@pytest.mark.parametrize("name", ["transformers", "ultralytics", "rapidocr"])
def test_all_code_that_is_stood_in_for_is_known(name):
    """Of the versions that are tested: `known_code.py --write` adds another's."""
    for package in (name, PAGES[name][0]):
        pytest.importorskip(package, reason=f"{package} is not installed")
    assert not common.moved(import_module(f"octopus.integrations.{name}").relied_on())


IMAGE = np.zeros((300, 500, 3), np.uint8)


@pytest.mark.parametrize(("name", "call", "tested", "older", "newer"), [
    ("sahi", lambda stand_ins: stand_ins.slices(IMAGE, 64, 64), "0.12 to 0.12", "0.11.36", "0.13.0"),
    ("supervision", lambda stand_ins: stand_ins.batched(list, 100), "0.30 to 0.31", "0.29.1", "0.32.0"),
])  # fmt: skip
def test_an_older_version_is_refused_and_a_newer_one_warned_of(monkeypatch, name, call, tested, older, newer):
    package = pytest.importorskip(name, reason=f"{name} is not installed")
    stand_ins = import_module(f"octopus.integrations.{name}")
    monkeypatch.setattr(package, "__version__", older)
    with pytest.raises(MissingPackageError, match=f"tested with {name} {tested}, found the older {older}"):
        call(stand_ins)
    monkeypatch.setattr(package, "__version__", newer)
    with pytest.warns(UserWarning, match=f"{name} {newer} is newer than {tested}"):
        call(stand_ins)


def test_nothing_is_imported_unasked():
    modules = ["octopus.images", *(f"octopus.integrations.{name}" for name in PAGES)]
    packages = {"torch", "cv2", *PAGES}
    code = (
        f"import sys, octopus, octopus.integrations; octopus.crop_resize, octopus.images.resize\n"
        f"assert 'octopus.integrations.transformers' not in sys.modules\n"
        f"import {', '.join(modules)}; assert not {packages} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
