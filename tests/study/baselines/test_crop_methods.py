"""Every method on crops gives the answer that its name promises, or says why it can't run here."""

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import numpy as np
import PIL
import pytest
from crop_methods import EXACT, FRAME, NAMES, cropped, expected, job, levels, limit, make

from octopus_study import names
from octopus_study.baselines import pillow
from octopus_study.baselines.availability import Unavailable
from octopus_study.baselines.fused import OctopusOnGpu
from octopus_study.baselines.method import CropMethod
from octopus_study.baselines.published import Published, build_metadata

REASONS = ("is not installed", "can't be loaded", "has no CUDA provider", "is C++", "can't be fetched")
ON_THE_CPU = (
    "octopus", "octopus-image", "published", "n-launches", "n-launches-fused", "opencv", "opencv-table-threads",
    "padded-onnxruntime",
)  # fmt: skip


def installed(name):
    library = next(row.library for row in names.CROP_METHODS if row.name == name)
    packages = [package for each in names.LIBRARIES if each.name == library for package in each.packages]
    for package in packages:
        try:
            return bool(version(package))
        except PackageNotFoundError:
            continue
    return not packages


def check(method):
    """Both ways to the result give the same, right answer."""
    method.job.poison()
    method.run()
    whole = method.result().copy()
    assert levels(whole, expected(method)) <= limit(method)
    assert np.array_equal(method.result(2), whole[::2])
    method.job.poison()
    method.prepare()
    method.kernels()
    assert np.array_equal(method.result(), whole)


@pytest.mark.parametrize("name", NAMES)
def test_on_the_cpu(name):
    made = make(name, "cpu")
    if isinstance(made, CropMethod):
        check(made)
        assert made.name == name
    else:
        assert "works on a GPU alone" in made or ("is not installed" in made and not installed(name))
        assert name not in ON_THE_CPU


# A slice of one pixel is contiguous to PyTorch whatever its strides, and kornia-rs refuses it.
REFUSES = pytest.mark.xfail(
    all(find_spec(name) for name in ("kornia_rs", "torch")),
    raises=ValueError,
    strict=True,
    reason="kornia-rs takes no slice of one pixel",
)
ON_THE_GPU = [pytest.param(name, marks=REFUSES) if name == "kornia-rs" else name for name in NAMES]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_THE_GPU)
def test_on_the_gpu(name):
    made = make(name, "cuda")
    if isinstance(made, CropMethod):
        check(made)
    else:
        assert any(word in made for word in REASONS)


@pytest.mark.gpu
def test_stages_on_the_gpu():
    check(OctopusOnGpu(job("cuda")))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ON_THE_GPU)
def test_kernels_on_the_gpu_see_a_new_frame(name):
    made = make(name, "cuda")
    if not isinstance(made, CropMethod):
        return
    made.run()
    before = made.result().copy()
    made.prepare()
    reads_the_host = made.on_host or made.why_different.startswith(("resizes the padded", "reads an NV12"))
    if made.job.device_frame is not None:
        made.job.device_frame.copy_from_host(np.ascontiguousarray(255 - FRAME))
    made.kernels()
    assert bool((made.result() != before).any()) is not reads_the_host


def test_the_published_passes_do_round():
    method = Published(job("cpu"))
    method.run()
    assert levels(method.result(), cropped("box")) > EXACT


def test_stages_together_are_the_run():
    published = Published(job("cpu"))
    published.run()
    whole = published.job.out.copy()
    published.job.poison()
    published.upload()
    published.crop_resize()
    published.normalize()
    assert np.array_equal(published.job.out, whole)


def test_metadata_are_the_published_eight_words_per_object():
    metadata = build_metadata(job("cpu"))
    assert metadata.dtype == np.int32
    assert metadata[4].tolist() == [10, 20, 50, 70, 300, 200, 56, 40]
    # P1: 1000 objects x 8 int32 = 31 KB
    assert metadata[:1].nbytes * 1000 // 1024 == 31


def test_pillow_and_pillow_simd_are_told_apart_wherever_they_lie(monkeypatch, tmp_path):
    monkeypatch.setattr(PIL, "__version__", "12.1.1.post0")
    assert pillow.image_module(simd=True) is pillow.Image
    with pytest.raises(Unavailable, match=r"Pillow-SIMD 12\.1\.1\.post0 is in its place"):
        pillow.image_module(simd=False)
    monkeypatch.setattr(PIL, "__version__", "13.0.0")
    assert pillow.image_module(simd=False) is pillow.Image
    with pytest.raises(Unavailable, match=r"Pillow-SIMD is not installed .*SITE-PACKAGES/pillow_simd"):
        pillow.image_module(simd=True)
    place = tmp_path / "pillow_simd" / "PIL"
    place.mkdir(parents=True)
    (place / "__init__.py").touch()
    (place / "Image.py").write_text("from . import __name__ as package")
    monkeypatch.syspath_prepend(tmp_path)
    assert pillow.image_module(simd=True).package == "pillow_simd.PIL"
    for name in ("pillow_simd.PIL.Image", "pillow_simd.PIL", "pillow_simd"):
        sys.modules.pop(name)
