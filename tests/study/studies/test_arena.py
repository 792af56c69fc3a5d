"""The arena, its variants, video and counts: methods and boxes of each layer, wrong answers, reasons of gaps."""

import dataclasses
import re
import sys
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
import pytest
from quick import quick_config

import octopus
from octopus.errors import InputError
from octopus_study import names
from octopus_study.baselines.availability import need
from octopus_study.baselines.fused import ImageEdge, Octopus
from octopus_study.baselines.job import make_job
from octopus_study.baselines.method import NOT_BY_EVENTS, CropMethod
from octopus_study.baselines.opencv import ONE_THREAD, OpenCvDirect, OpenCvThreads
from octopus_study.baselines.registry import make
from octopus_study.config import load_config
from octopus_study.measure import Case, read_rows, unavailable
from octopus_study.report.claims.rules import load_claims
from octopus_study.studies import run_study
from octopus_study.studies.arena import byte_crops, calls, memory, variants, video
from octopus_study.studies.arena import layers as arena_layers
from octopus_study.studies.arena.layers import IN_SERIES, Batch, layers, too_slow
from octopus_study.studies.arena.study import EDGES, Batches, one_scale
from octopus_study.studies.arena.workloads import boxes_of, uniform_boxes
from octopus_study.studies.comparison import Comparison, Part
from octopus_study.studies.context import make_context
from octopus_study.studies.crops import crop_job, reference_of


class Right(CropMethod):
    """A baseline that copies what Octopus computes into memory of its own."""

    name, offset = "right", 0.0

    def __init__(self, job):
        super().__init__(job)
        self._own = Octopus(job)
        self._out = np.empty_like(job.out)

    def prepare(self):
        self._own.prepare()

    def run(self):
        self._own.run()
        np.add(self._own.output(), np.float32(self.offset), out=self._out)

    def result(self, every=1):
        return self._out[::every]

    def output(self):
        return self._out


class Wrong(Right):
    name, why_different, offset, why_no_device = "wrong", "adds one", 1.0, NOT_BY_EVENTS


class Broken(Right):
    name = "broken"

    def run(self):
        raise RuntimeError("no such engine")


class Lazy(Right):
    """It does its work once, and then shows what it did."""

    name, done = "lazy", False

    def run(self):
        if not self.done:
            super().run()
            self.done = True


class Careless(Right):
    name = "careless"

    def run(self):
        super().run()
        self._out[-1, -1, -1, -1] += 1


class Across(Right):
    name, edge = "across", "image"

    def __init__(self, job):
        super().__init__(job)
        self._own = ImageEdge(job)


class Vandal(Right):
    name = "vandal"

    def run(self):
        super().run()
        self.job.frame[::2] = 7


class Absent(Right):
    name = "absent"

    def __init__(self, job):
        need("octopus_warp_drive", "absent")


FAKES = {kind.name: kind for kind in (Right, Wrong, Broken, Lazy, Careless, Across, Vandal)} | {"absent": Absent}
OWN = ("octopus", "octopus-one-call", "octopus-fp16", "published", "n-launches", "n-launches-fused", "opencv")


@pytest.fixture
def fakes(monkeypatch):
    """Octopus' own and OpenCV, and instead of the other libraries these."""
    monkeypatch.setitem(sys.modules, "octopus_study.baselines.fakes", sys.modules[__name__])
    own = [row for row in names.CROP_METHODS if row.name in OWN or not row.target]
    baselines = [names.MethodRow(name, name, target=f"fakes:{kind.__name__}") for name, kind in FAKES.items()]
    monkeypatch.setattr(names, "CROP_METHODS", (*own, *baselines))


@pytest.fixture(scope="module")
def context(manifest):
    return make_context("arena", quick_config({}), manifest)


@pytest.fixture
def batch(context, fakes):
    job = crop_job(context, boxes_of(context, "visdrone", 5))
    crops = reference_of(context)
    made = Batch(context, job, {edge: crops.of(job.boxes, edge) for edge in EDGES}, 1)
    made.gather()
    return made


CASE = Case("arena", "synthetic-visdrone", "visdrone", 5)


def whole(layer):
    return Comparison(CASE, "end_to_end", layer, arena_layers.names())


def answers(rows):
    return {row.method: row.answer for row in rows if row.unit == "ms"}


def nearest(self, x1, y1, x2, y2, item):
    cv2.resize(self.job.frame[y1:y2, x1:x2], self._size, dst=item, interpolation=cv2.INTER_NEAREST)


def beside(self, x1, y1, x2, y2, item):
    cv2.resize(self.job.frame[y1:y2, x1 + 1 : x2 + 1], self._size, dst=item)


def nothing(self, x1, y1, x2, y2, item):
    pass


def brighter(self):
    Octopus.run(self)
    self.job.out[-1, -1, -1, -1] ^= 2


@pytest.mark.parametrize(("method", "does"), [
    ("opencv-direct", nearest), ("opencv-direct", beside), ("opencv-direct", nothing), ("octopus", brighter),
])  # fmt: skip
def test_wrong_bytes_are_seen(context, monkeypatch, method, does):
    own = type("Own", (Octopus,), {"run": does} if method == "octopus" else {})
    baseline = type("Baseline", (OpenCvDirect,), {"crop": does} if method != "octopus" else {})
    monkeypatch.setattr(byte_crops, "Octopus", own)
    monkeypatch.setattr(byte_crops, "KINDS", {"uint8": byte_crops.KINDS["uint8-nhwc"]._replace(baselines=(baseline,))})
    (part,) = byte_crops.parts(context, "visdrone", boxes_of(context, "visdrone", 5))
    found = answers(part.rows(context))
    wrong = {name for name, answer in found.items() if answer.error}
    assert wrong == ({method, f"{method}-again"} & {*found}) and found.keys() - wrong


def test_uniform_boxes_are_those_of_the_seed_and_the_first_stay_the_same():
    boxes = uniform_boxes(100, 1920, 1080, 256, 42)
    assert (boxes[:, 2:] - boxes[:, :2] == 256).all()
    assert boxes.min() >= 0 and boxes[:, 2].max() <= 1920 and boxes[:, 3].max() <= 1080
    assert np.array_equal(boxes[:28], uniform_boxes(28, 1920, 1080, 256, 42))
    assert not np.array_equal(boxes, uniform_boxes(100, 1920, 1080, 256, 43))
    assert uniform_boxes(3, 256, 256, 256, 0).tolist() == [[0, 0, 256, 256]] * 3
    with pytest.raises(InputError, match=r"set arena\.uniform_side"):
        uniform_boxes(1, 200, 1080, 256, 42)


def test_baselines_are_judged_by_the_reference(batch):
    found = answers(batch.rows(whole("host")))
    assert found["right"] == "same"
    assert found["wrong"] == "different: adds one" and found["wrong"].error == pytest.approx(1, rel=0.1)
    assert found["broken"] == "unavailable: RuntimeError: no such engine"
    assert found["absent"] == "unavailable: absent is not installed"
    assert found["vandal"] == "different: it wrote into the frame"


def test_every_crop_is_compared_and_on_poisoned_memory(batch):
    found = answers(batch.rows(whole("host")))
    assert "NaN" in found["lazy"]
    assert found["careless"].startswith("different: by as much as 1")


def test_who_reads_across_the_edge_is_judged_by_a_reference_that_does_so(batch):
    assert answers(batch.rows(whole("host")))["across"] == "same"
    batch.expected = dict.fromkeys(EDGES, batch.expected["box"])
    assert answers(batch.rows(whole("host")))["across"].startswith("different")


def test_one_mean_and_one_deviation_have_a_batch_of_their_own(context, fakes, monkeypatch):
    case, seen, run = CASE._replace(workload="visdrone-onescale"), set(), Right.run
    monkeypatch.setattr(Right, "run", lambda self: (seen.add((self.job.mean, self.job.std)), run(self)))
    part = Part(one_scale, (Comparison(case, "end_to_end", "host", ("octopus", "right", "absent")),))
    found = answers(part.rows(context))
    assert found == {
        "octopus": "same", "octopus-again": "same", "right": "same", "absent": "unavailable: absent is not installed",
    }  # fmt: skip
    assert seen == {((0.0,) * 3, (255.0,) * 3)}


def test_the_device_layer_takes_who_can_be_seen_and_the_write_bounds(batch):
    # On a CPU the comparison is there only to be tested, by the host's clock.
    found = answers(arena_layers.device_rows(batch, dataclasses.replace(layers(CASE, "cuda")[0], layer="host")))
    assert found["octopus"] == found["octopus-again"] == found["octopus-fp16"] == found["right"] == "same"
    assert found["write-bound"] == found["write-bound-fp16"] == "n/a"
    assert found["wrong"] == f"unavailable: {NOT_BY_EVENTS}"
    assert found["n-launches"].startswith("unavailable: its launches come from the host")


class Locked:
    """Stands for page-locked memory: the result is copied once more."""

    def __init__(self, job):
        self.result = np.empty_like(job.out)

    def through(self, method):
        def run():
            method.run()
            self.result[...] = method.output()

        return run

    def downloaded(self, method, every=1):
        return self.result[::every]

    def poison(self):
        self.result.fill(np.nan)


def test_the_pipeline_layer_checks_what_comes_back(batch):
    batch.locked = Locked(batch.job)
    rows = batch.rows(whole("pipeline"))
    found = answers(rows)
    assert {row.layer for row in rows} == {"pipeline"}
    assert found["octopus"] == found["right"] == "same"
    batch.locked.through = lambda method: method.run  # nothing is brought back
    assert "NaN" in answers(batch.rows(whole("pipeline")))["octopus"]


def test_who_has_no_room_says_so_and_the_rest_goes_on(batch, monkeypatch):
    batch.release()
    assert batch.methods == []
    monkeypatch.setattr("octopus.backends.cpu.free_bytes", lambda: 10)
    batch.gather([])
    assert batch.methods == [] and not batch.missing
    batch.gather()
    assert set(batch.missing) == set(arena_layers.names())
    assert all("10 are free" in why for why in batch.missing.values())


def test_the_slowest_are_left_out_until_the_rest_fits_and_never_the_base_or_opencv():
    seconds = {"octopus": 1.0, "opencv": 0.0, "quick": 0.5, "slow": 3.0, "slowest": 9.0}
    assert too_slow(seconds, 18, 1000) == {}
    assert set(too_slow(seconds, 18, 120)) == {"slowest"}
    assert set(too_slow(seconds, 18, 60)) == {"slowest", "slow"}
    left = too_slow(seconds, 18, 1)
    assert set(left) == {"slowest", "slow", "quick"}
    assert "one batch takes 9 s: too slow for 18 blocks" in left["slowest"]
    assert too_slow({"octopus": 1.0, "opencv": 50.0, "quick": 0.1}, 20, 10).keys() == {"quick"}


def test_what_is_too_slow_gets_a_row(batch):
    settings = batch.context.config.arena.model_copy(update={"least_blocks_seconds": 0.0})
    config = batch.context.config.model_copy(update={"arena": settings})
    batch.context = dataclasses.replace(batch.context, config=config)
    found = answers(batch.rows(whole("host")))
    assert "too slow for 3 blocks beside the others" in found["right"]
    assert found["octopus"] == found["octopus-again"] == found["opencv"] == "same"


@pytest.mark.parametrize("kind", ONE_THREAD)
@pytest.mark.parametrize("count", [1, 19])
def test_a_pool_of_threads_gives_the_answer_of_one(context, kind, count):
    boxes = boxes_of(context, "visdrone", count)
    jobs = [make_job(context.workload.frame, boxes, (9, 8), (1.0,) * 3, (2.0,) * 3, "cpu") for _ in range(2)]
    kind(jobs[0]).run()
    with context.threads(2):
        pool = make(f"{kind.name}-threads", jobs[1])
    pool.run()
    assert pool.threads == 2 and isinstance(pool, kind)
    assert np.array_equal(jobs[0].out, jobs[1].out)


def test_a_thread_that_fails_is_heard(context):
    job = make_job(context.workload.frame, np.array([[5, 5, 5, 9]], np.int32), (9, 8), (1.0,) * 3, (2.0,) * 3, "cpu")
    with pytest.raises(Exception, match="resize"):
        OpenCvThreads(job).run()


@pytest.mark.parametrize("method", OWN)
def test_every_method_of_this_package_can_be_asked_for_its_memory(method):
    boxes = [[0, 0, 9, 9], [4, 5, 30, 40]]
    probe = memory.probe(method, "cpu", boxes, [6, 7], [50, 60, 3])
    item = 2 if method == "octopus-fp16" else 4
    assert probe.payload == 50 * 60 * 3 + 2 * 3 * 6 * 7 * item + 2 * 4 * 4
    (made,) = probe.run()
    assert np.isfinite(made.result()).all()
    assert probe.allocator_peak is None


def test_memory_is_measured_in_a_process_of_its_own(context, fakes):
    settings = context.config.arena.model_copy(update={"memory": True})
    # A small result may lie in memory that the process had before.
    crop = context.config.crop.model_copy(update={"size": (200, 240)})
    changed = context.config.model_copy(update={"arena": settings, "crop": crop})
    asked = dataclasses.replace(context, config=changed)
    missing = dict.fromkeys(set(arena_layers.names()) - {"octopus"}, "not asked for")
    case, layer = Case("arena", "synthetic", "visdrone", 6), ("host", "end_to_end", "ms")
    part, batches = Part(None, memory.comparisons(case, arena_layers.names())), Batches(None, least=6)
    gaps = [unavailable(case, name, *layer, why) for name, why in missing.items()]
    batches.recall([case.row("octopus", *layer, 1.0), *gaps])
    assert batches.missing == missing  # as after a run that was taken up again
    rows = list(batches.memory(asked, part))
    lines = {row.quantity: row.value for row in rows if row.method == "octopus"}
    grown = [row.block for row in rows if row.method == "octopus" and row.quantity == "memory_device_delta"]
    assert grown == [0, 1]
    frame = context.workload.frame
    assert lines["memory_payload"] == frame.nbytes + 6 * (3 * 200 * 240 * 4 + 16)
    assert lines["memory_device_delta"] >= 6 * 3 * 200 * 240 * 4
    assert {row.answer for row in rows if row.method == "right"} == {"unavailable: not asked for"}


@pytest.mark.gpu
def test_all_layers_of_a_gpu_are_there_and_octopus_is_right_in_each(manifest, tmp_path):
    config = quick_config({"device": "cuda", "arena.pipeline_max_count": 3})
    rows = read_rows(run_study("arena", config=config, manifest=manifest, out=tmp_path / "arena.csv"))
    batches = rows[(rows.unit == "ms") & rows.workload.isin(["uniform", "visdrone"])]
    alone = batches.quantity.isin([calls.QUANTITY, calls.ALONE])  # no answer is asked for again
    assert set(batches[alone].status[batches[alone].method == "octopus"]) == {"n/a"}
    timed = batches[~alone]
    assert set(timed.layer) == {"device", "host", "pipelined", "pipeline"}
    for (_, n, layer), group in timed.groupby(["workload", "n", "layer"]):
        assert set(group.method) >= set(IN_SERIES if layer == "pipelined" else arena_layers.names())
        exact = group[group.method.isin(["octopus", "octopus-again", "octopus-fp16"])]
        if layer == "pipeline" and n > 3:
            assert group.value.isna().all()
        else:
            assert set(exact.status) == {"same"} and exact.value.notna().all()
    host = timed[(timed.method == "opencv") & (timed.layer == "host")]
    assert host.reason.str.startswith("works on the host").all()
    assert set(timed[timed.layer == "device"].method) >= {"write-bound", "write-bound-fp16"}


@pytest.mark.gpu
@pytest.mark.parametrize("method", OWN[:-1])
def test_who_writes_into_memory_of_its_own_does_not_hold_the_job_s_too(method):
    probe = memory.probe(method, "cuda", [[0, 0, 99, 99]] * 4, [20, 24], [200, 200, 3])
    (made,) = probe.run()
    held = vars(made.job.out).get("_array")
    assert (held is not None) == (method not in ("octopus-fp16", "octopus-one-call"))
    assert np.isfinite(made.result() if held is None else held.copy_to_host()).all()


CONFIG = Path(__file__).parents[3] / "config"
FAST = ("uint8-nhwc", "float16-320", "to-32", "frames", "frames-antialias")


@pytest.fixture
def on_gpu(context, monkeypatch):
    """What is planned on a GPU, at full effort; nothing is measured."""
    monkeypatch.setattr("octopus_study.studies.context.cuda_memory.total_bytes", lambda: 80 << 30)
    return dataclasses.replace(context, device="cuda", config=load_config(CONFIG / "config.yaml"))


def planned(context):
    crops = reference_of(context)
    every = (variants.parts(context), video.parts(context), calls.parts(context, crops))
    return [comparison for part in chain(*every) for comparison in part.comparisons]


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
        assert found == {"octopus": "same", "octopus-again": "same", "write-bound": "n/a"}


@pytest.mark.parametrize(("name", "options"), [
    ("uint8", {"edge": "image"}), ("frames-antialias", {"antialias": False}), ("to-32", {"antialias": True}),
])  # fmt: skip
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
