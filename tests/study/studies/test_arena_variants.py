"""The arena's variants, frames of video and counts: claims name what is planned, and wrong answers are seen."""

import dataclasses
import re
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import octopus
from octopus_study.config import load_config
from octopus_study.report.claims.rules import load_claims
from octopus_study.studies.arena import calls, variants, video
from octopus_study.studies.crops import reference_of

CONFIG = Path(__file__).parents[3] / "config"
FAST = ("uint8-nhwc", "float16-320", "to-32", "frames", "frames-antialias")


@pytest.fixture(scope="module")
def context(quick_context):
    return quick_context("arena")


@pytest.fixture
def on_gpu(context, monkeypatch):
    """What is planned on a GPU, at full effort; nothing is measured."""
    monkeypatch.setattr("octopus_study.studies.context.cuda_memory.total_bytes", lambda: 80 << 30)
    return dataclasses.replace(context, device="cuda", config=load_config(CONFIG / "config.yaml"))


def planned(context):
    crops = reference_of(context)
    every = (variants.parts(context), video.parts(context), calls.parts(context, crops))
    return [comparison for part in chain(*every) for comparison in part.comparisons]


def answers(rows):
    return {row.method: row.answer for row in rows if row.unit == "ms"}


def part_of(context, name, count):
    found = (part for part in variants.parts(context) if part.case[2:4] == (f"{variants.PREFIX}-{name}", count))
    return next(found)


def test_claims_name_what_is_planned(on_gpu):
    asked = planned(on_gpu)
    ids = {
        f"{{run}}.arena.{each.case.workload}.n{each.case.n}.{method}.{each.quantity}.{each.layer}"
        for each in asked
        for method in each.methods
    }
    claims = load_claims(CONFIG / "claims.yaml")
    of_these = re.compile(r"\{run\}\.arena\.(road|nv12|count)-?")
    named = [name for claim in claims for name in claim.ids("{run}") if of_these.match(name)]
    assert len(named) > 20
    for name in named:
        number, _, derived = name.rpartition(".") if "_of_" in name or "_over_" in name else (name, "", "")
        assert number in ids, name
        other = derived.partition("_over_")[2]
        assert not other or f"{number.replace('.octopus.', f'.{other}.')}" in ids, name


@pytest.mark.parametrize("name", FAST)
def test_a_variant_is_right_and_beside_its_bounds(context, name):
    for count in variants.VARIANTS[name].counts(context)[:1]:
        found = answers(part_of(context, name, count).rows(context))
        assert found == {
            "octopus": "same", "octopus-again": "same", "write-bound": "n/a"
        }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options"),
    [("uint8", {"edge": "image"}), ("frames-antialias", {"antialias": False}), ("to-32", {"antialias": True})],
)
def test_an_answer_to_other_options_is_seen(context, monkeypatch, name, options):
    right = variants.OfVariant.right

    def asked_otherwise(self, every):
        self._variant = self._variant._replace(options=dict(self._variant.options) | options)
        return right(self, every)

    monkeypatch.setattr(variants.OfVariant, "right", asked_otherwise)
    found = answers(part_of(context, name, variants.VARIANTS[name].counts(context)[0]).rows(context))
    assert found["octopus"].startswith("different: by as much as")


def test_nv12_there_and_back_is_the_library_s():
    grey = np.repeat(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3, axis=2)
    groups = np.random.default_rng(2).integers(0, 256, (8, 8, 3), np.uint8).repeat(2, axis=0).repeat(2, axis=1)
    for frame in (grey, groups):  # both chroma values are rounded, at half the scale of blue
        nv12, exact = video.coded(frame)
        assert np.abs(exact - frame).max() < 2
        own = octopus.NV12(nv12[:16], nv12[16:], matrix="bt601", range="full")
        found = octopus.crop_resize(own, np.array([[0, 0, 16, 16]]), (16, 16), layout="NHWC", device="cpu")[0]
        assert np.abs(found - exact).max() < 1e-3


@pytest.mark.gpu
@pytest.mark.parametrize("module", [variants, video])
def test_on_a_gpu_octopus_is_right(quick_context, module):
    context = quick_context("arena", device="cuda")
    for part in module.parts(context):
        found = answers(part.rows(context))
        own = {name: answer for name, answer in found.items() if name.startswith("octopus")}
        assert set(own.values()) == {"same"}, part.case
        # Whoever is there has a time, and who reads the same NV12 the same answer.
        assert not {name for name in found if name.endswith("bound") and found[name] != "n/a"}
        assert found.get("cuframe", "same") == "same" or found["cuframe"].startswith("unavailable")


@pytest.mark.gpu
def test_counts_on_a_gpu_are_obeyed(quick_context):
    context = quick_context("arena", device="cuda")
    for part in calls.parts(context, reference_of(context)):
        found = {row.answer for row in part.rows(context) if row.workload.startswith("count") and row.unit == "ms"}
        assert found == ({"same"} if part.case.workload.startswith("count") else set()), part.case
