"""What all stand-ins promise: their pages run, other versions are told, and nothing is imported unasked."""

import re
import subprocess
import sys
import warnings
from importlib import import_module

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


# Versions that are tested, an older and a newer one, and calls, which are given the module of the package's tests.
VERSIONS = {
    "sahi": ("0.12 to 0.12", "0.11.36", "0.13.0", [lambda tests: tests.slices(tests.picture(), 64, 64)]),
    "supervision": ("0.30 to 0.31", "0.29.1", "0.32.0", [lambda tests: tests.batched(list, 100)]),
    "transformers": ("5.17 to 5.24", "5.16.2", "6.1.0", [
        lambda tests, **more: tests.accelerate(tests.make("ViTImageProcessor"), **more)(tests.pictures()),
    ]),
    "ultralytics": ("8.4.179 to 8.4.190", "8.4.178", "8.4.300", [
        lambda tests, **more: tests.accelerate(tests.Plain(), **more).preprocess(tests.pictures()),
        lambda tests: tests.letterbox(tests.pictures(), tests.LetterBox(320)),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", VERSIONS)
def test_an_older_version_is_refused_and_a_newer_one_warned_of_once(monkeypatch, name):
    package = pytest.importorskip(name, reason=f"{name} is not installed")
    tests, (tested, older, newer, calls) = import_module(f"test_{name}"), VERSIONS[name]
    for call in calls:
        monkeypatch.setattr(package, "__version__", older)
        with pytest.raises(MissingPackageError, match=f"{name} {tested}, found the older {older}.* untested=True"):
            call(tests)
    if name in ("transformers", "ultralytics"):
        calls[0](tests, untested=True)
    monkeypatch.setattr(package, "__version__", newer)
    with pytest.warns(UserWarning, match=f"{name} {newer} is newer than {tested}") as warned:
        for call in calls:
            call(tests)
    assert len(warned) == 1


@pytest.mark.parametrize("name", VERSIONS)
def test_without_the_package(monkeypatch, name):
    pytest.importorskip(name, reason=f"{name} is not installed")
    tests, call = import_module(f"test_{name}"), VERSIONS[name][-1][0]
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingPackageError, match=rf"pip install 'octopus-ragged\[{name}\]'"):
        call(tests)


def test_nothing_is_imported_unasked():
    modules = ["octopus.images", *(f"octopus.integrations.{name}" for name in PAGES)]
    packages = {"torch", "cv2", *PAGES}
    code = (
        f"import sys, octopus, octopus.integrations; octopus.crop_resize, octopus.images.resize\n"
        f"assert 'octopus.integrations.transformers' not in sys.modules\n"
        f"import {', '.join(modules)}; assert not {packages} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
