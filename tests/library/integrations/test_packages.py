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
    "rapidocr": ("3.10 to 3.10", "2.1", "3.11.0", [lambda tests: tests.accelerate(tests.RapidOCR(params=tests.QUIET))]),
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
        monkeypatch.setattr(package, "__version__", older, raising=False)
        with pytest.raises(MissingPackageError, match=f"{name} {tested}, found the older {older}.* untested=True"):
            call(tests)
    if name in ("transformers", "ultralytics"):
        calls[0](tests, untested=True)
    monkeypatch.setattr(package, "__version__", newer)
    with pytest.warns(UserWarning, match=f"{name} {newer} is newer than {tested}") as warned:
        for call in calls:
            call(tests)
    assert len(warned) == 1


@pytest.mark.parametrize(("name", "make", "changed"), [
    ("rapidocr", lambda tests: tests.RapidOCR(params=tests.QUIET), "rapidocr.main.RapidOCR.cls_and_rotate"),
    ("ultralytics", lambda tests: tests.Plain(), "ultralytics.data.augment.LetterBox.get_params"),
    *(("transformers", lambda tests, kind=kind: tests.make(kind), f"transformers.{changed}") for kind, changed in (
        ("ViTImageProcessor", "image_processing_backends.TorchvisionBackend.rescale_and_normalize"),
        ("CLIPImageProcessor", "image_transforms.get_resize_output_image_size"),
        ("Qwen2VLImageProcessor", "models.qwen2_vl.image_processing_qwen2_vl.smart_resize"),
    )),
])  # fmt: skip
def test_code_that_a_newer_version_changed_answers_itself(monkeypatch, name, make, changed):
    package = pytest.importorskip(name, reason=f"{name} is not installed")
    tests = import_module(f"test_{name}")
    digests = {one: [] if one == changed else known for one, known in common._digests().items()}
    monkeypatch.setattr(common, "_digests", lambda: digests)
    monkeypatch.setattr(common, "_newer", {name})
    with warnings.catch_warnings():
        warnings.simplefilter("error", common.FallbackWarning)
        tests.accelerate(make(tests))  # what is tested is not compared
    monkeypatch.setattr(package, "__version__", "99.0", raising=False)
    target = make(tests)
    before = dict(vars(target))
    with pytest.warns(common.FallbackWarning, match=f"has changed {changed}"):
        assert tests.accelerate(target) is target
    assert vars(target) == before


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
