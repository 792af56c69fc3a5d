"""What single studies derive by a rule of their own, and say where rows are missing or of another answer."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from committed_runs import GPU, write, write_run
from frames import SOURCE, build_report, caption, lines, matching, number, said, text
from matplotlib.axes import Axes
from matplotlib.text import Text
from mutating import disable

from octopus_study import names as labels
from octopus_study.data.distributions import satellite_tiles
from octopus_study.data.sentinel2 import ATTRIBUTION
from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.measure.rows import read_rows
from octopus_study.names import ARENA_METHODS, CONCURRENCY_PAIRS, EMBEDDERS, WORKING_SETS
from octopus_study.report.charts import style
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame, Key, make_number
from octopus_study.report.measured import fastest
from octopus_study.report.outputs import draw
from octopus_study.report.samples import Group, resampled
from octopus_study.report.studies import arena, drone, images, mapping, report_of, satellite
from octopus_study.report.studies.image_shape import HEURISTICS, QUADRANTS, UNDECIDED, verdict
from octopus_study.report.studies.total_cost import Costs, Draws, together
from octopus_study.report.studies.total_cost import draw as draws_of
from octopus_study.report.tables.spec import build
from octopus_study.report.view import View, views
from octopus_study.status import MethodStatus, different
from octopus_study.studies.arena.layers import WRITE_BOUNDS, names
from octopus_study.studies.images.embeddings import KINDS, PATCH_14, WORKLOADS
from octopus_study.studies.images.job import BATCHES

ARENA = "gpu.arena.visdrone.n1000"
HOST = f"{ARENA}.octopus.end_to_end.host"
RULES = ("fixed", "otsu", "byte-budget")
OF_IMAGES = (
    text(Key("m", "machine", quantity="kind"), "gpu"),
    text(Key("m", "images", quantity="measured_on"), "2026-11-21"),
)


def one_study(root: Path, study: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Path:
    """Build the report of a GPU whose rows of one study are changed."""
    table = write_run(root / "reference", GPU, "gpu", only=(study,)) / f"{study}.csv"
    write(table, change(read_rows(table)))
    return build_report(root / "report", None, root / "reference")


def test_runs_in_which_nothing_works_show_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = ("mapping", "satellite", "drone")
    folder = write_run(tmp_path / "reference", GPU, "gpu", only=studies)
    for study in studies:
        write(folder / f"{study}.csv", disable("study", study).apply(read_rows(folder / f"{study}.csv")))
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    stamps, finish = [], style.finish
    monkeypatch.setattr(style, "finish", lambda *given: finish(*given[:2], stamps.append(given[2]), *given[3:]))
    names = [name for study in studies for name in report_of(study).figures]
    for name in names:
        draw(name, report / "numbers.csv", tmp_path / name)
    assert len(stamps) == len(names) > 0 and not any(stamps)
    known = Frame.read(report / "numbers.csv")
    assert mapping.measured(known) == []
    shown = {"satellite": satellite.scenes, "drone": drone.clips}
    assert [view for study, has in shown.items() for view in views(known, study) if has(view)] == []


def without(column: str, *values: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda rows: rows[~rows[column].isin(values)]


def test_methods_steps_and_batches_have_names_of_their_own() -> None:
    assert {*names(), *WRITE_BOUNDS} <= set(ARENA_METHODS)
    assert len(set(ARENA_METHODS.values())) == len(ARENA_METHODS)
    assert list(labels.LADDER_STEPS) == list(labels.LADDER_CHANGES)
    assert set(labels.IMAGE_BATCHES) == {*BATCHES, *WORKLOADS}
    assert set(EMBEDDERS) == {*KINDS, *PATCH_14}


def test_a_method_is_compared_with_octopus_of_the_same_answer_or_not_at_all(numbers: Frame) -> None:
    key = numbers[HOST].key
    run = SimpleNamespace(key=lambda *_, **__: key, from_rows=lambda *_: numbers[HOST].source)
    blocks = pd.RangeIndex(30, name="block")
    table = pd.DataFrame({"octopus": 1.0, "roi-align": 2.0, "cvcuda": 3.0}, index=blocks)
    group = Group("visdrone-val", "visdrone", 1000, "end_to_end", "host")
    for like, best, value in ((None, "cvcuda", 3), (2.0, "roi-align", 1)):
        if like:
            table["octopus-image"] = like
        found = list(fastest(run, group, table, ["roi-align", "cvcuda"], "best_baseline", "baselines"))
        assert found[0].text == ARENA_METHODS[best] and found[1].value == value
        assert {one.chosen for one in found} == {best}


def test_a_method_without_a_time_or_memory_is_named_with_the_reason(full: Path, numbers: Frame) -> None:
    lacking = arena.without_time(View(numbers, GPU, "arena"), [numbers[HOST].key])
    assert "TensorRT (padded)" in lacking and "TensorRT is not installed" in lacking
    assert any(row[0].startswith("**Unavailable here.") for row in lines(full, "arena"))
    memory = {row[0]: row[1:] for row in lines(full, "arena_memory")}
    assert memory["TensorRT (padded)"] == ["unavailable (b)"] * 4 and "unavailable" not in memory["Octopus"][0]
    assert "would take a CPU too long" in caption(full, "mapping")


def test_each_kind_of_machine_has_its_own_table(full: Path, alone: Path) -> None:
    gpus, cpus = ("".join(row[0] for row in lines(full, name)) for name in ("arena", "arena_cpu"))
    assert "NVIDIA H200" in gpus and "(this machine)" not in gpus and "(this machine)" in cpus
    for name in ("arena_ladder", "arena_submit", "arena_memory"):
        assert "need a GPU" in caption(alone, name)


def test_another_answer_is_hollow_and_named(numbers: Frame) -> None:
    axis = arena.device(numbers).subfigs[0].findobj(Axes)[0]
    marks = zip(axis.get_yticklabels(), hollow(axis), strict=True)
    assert ARENA_METHODS["published"] in {label.get_text() for label, other in marks if other}
    whole = Key("m", "images", "thumbnails", 256, "octopus", "end_to_end", "host")
    found = [
        *OF_IMAGES,
        number(whole, "ms", 1.0),
        make_number(whole.but(method="dali"), SOURCE, "ms", 3.0, answer=different("why")),
        number(whole.but(method="cvcuda"), "ms", 2.0),
        *(number(whole.speedup(name), "ratio", value) for name, value in (("dali", 3.0), ("cvcuda", 2.0))),
    ]
    figure = images.draw(Frame(found))
    (axis,) = [axis for axis in figure.findobj(Axes) if axis.get_xlabel().startswith("Time")]
    assert hollow(axis) == [True, False]
    assert "the answer differs. DALI: why." in figure.get_label()
    assert "Different answer" in {part.get_text() for part in figure.findobj(Text)}


def hollow(axis: Axes) -> list[bool]:
    return [mark.lines[0].get_markerfacecolor() == "white" for mark in axis.containers]


def test_the_way_to_embeddings_is_shown_step_by_step() -> None:
    alone = Key("m", "images", "large", 32, "octopus", "projection", "device")
    whole = alone.but(quantity="embeddings", layer="host")
    names = ("octopus", "octopus-bf16", "transformers")
    found = [
        *OF_IMAGES,
        *(number(alone.but(method=name), "ms", 1.0) for name in names),
        *(number(whole.speedup(name), "ratio", value) for name, value in zip(names[1:], (1.5, 30.0), strict=True)),
    ]
    shown = build(images.STEPS, Frame(found))
    assert [row if isinstance(row, str) else (row[0], row[-2]) for row in shown.rows[1:]] == [
        "32 of 512 to 2048 px, rows",
        (EMBEDDERS["transformers"], "30.0\u00d7"),
        (EMBEDDERS["octopus-bf16"], "1.50\u00d7"),
        (EMBEDDERS["octopus"], "\u2013"),
    ]


def test_a_run_of_few_boxes_is_shown_at_its_largest(numbers: Frame) -> None:
    few = [one._replace(id=one.key.but(n=6).id, n=6) for _, one in matching(numbers, r"here\.arena\.visdrone\.n1000.*")]
    here = View(Frame(few), "here", "arena")
    assert arena.shown(here, "visdrone", "host").n == 6 and arena.shown(here, "uniform", "host") is None


def test_where_several_processes_measured_the_interval_is_over_them() -> None:
    """Blocks within a process tell less than processes: here each process has times of its own."""
    factors = np.repeat([1.0, 1.2, 1.1], 7)
    blocks = np.concatenate([process * PROCESS_BLOCKS + np.arange(7) for process in range(3)])
    index = pd.Index(blocks, name="block")
    table = pd.DataFrame({"lookup-published": 2 * factors, "block-metadata": np.ones(21)}, index=index)
    once = {name: draws_of(table[name]) for name in table}
    group = Group("synthetic", "photos-500-light", 500, "kernel", "host")
    costs = Costs(group, once, {name: 0 * values for name, values in once.items()}, table, len(table))
    gain = costs.ratio("lookup-published", "block-metadata", 1)
    assert gain.processes == 3 and len(gain.values) == 4
    middle = gain.interval
    assert middle.value == pytest.approx(2 * (1.0 * 1.2 * 1.1) ** (1 / 3))
    assert middle.low < 2.0 and middle.high > 2.4 and middle.count == 21
    alone = table[:7]
    assert Draws(draws_of(alone["lookup-published"]), 7).interval[:3] == (2.0, 2.0, 2.0)
    assert [len(part) for part in together(table, table[:14])] == [14, 14]


def test_a_resampled_statistic_lies_in_its_interval() -> None:
    values = pd.Series(np.random.default_rng(1).normal(10, 1, 200), index=pd.RangeIndex(200, name="block"))
    value, low, high = resampled(values, np.mean)[:3]
    assert low < value < high and value == pytest.approx(values.mean())
    assert high - low == pytest.approx(2 * 1.96 / 200**0.5, rel=0.15)


def test_the_picture_comes_back_from_its_series(full: Path, alone: Path, drawn: Callable[..., Path]) -> None:
    """Real data go before generated ones; the owner of the picture is named."""
    assert ATTRIBUTION in said(drawn("satellite_tiles"))[-1]
    assert satellite.GENERATED in said(drawn("satellite_tiles", "alone"))[-1]
    for folder, synthetic in ((full, False), (alone, True)):
        picture = satellite.picture(Frame.read(folder / "numbers.csv"))
        assert picture.tiles.synthetic == synthetic and set(picture.kept) == set(RULES)
        assert (picture.boxes == satellite_tiles(1000, 1000)).all()
        pixels = picture.series.picture
        assert (pixels.min(), pixels.max()) == (0, 255)


def test_claims_on_greenland_need_the_full_real_scene(full: Path, tmp_path: Path) -> None:
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    claims = ("sat-tiles", "sat-kept", "sat-share", "sat-bytes", "sat-kept-downlink", "sat-saved", "sat-pipeline")

    def called_full(name: str) -> dict[str, str]:
        """Judge the study as if its window, or its generated scene, were the whole real one."""
        names = {"dataset": {"synthetic": "sentinel2-b04"}, "distribution": {name: "full"}}
        names["workload"] = {f"{name}-{variant}": f"full-{variant}" for variant in ("uint16", "rgb8")}
        whole = one_study(tmp_path / name, "satellite", lambda rows: rows.replace(names))
        return {one.claim_id: one.verdict for one in read_claims(whole / "claims.csv")}

    scale, window = called_full("scale"), called_full("window")
    for claim in claims:
        at_hand, generated = judged[claim, GPU], judged[claim, "here"]
        assert at_hand.verdict == generated.verdict == window[claim] == "not measurable here"
        assert at_hand.reason.endswith("needs the whole scene, not a window of it")
        assert generated.reason.endswith("needs the real scene, not generated data")
        # It is as large as the published scene, and keeps other tiles.
        assert scale[claim] == ("reproduced" if claim == "sat-tiles" else "not reproduced")


def test_nothing_is_said_of_what_a_window_would_save(numbers: Frame) -> None:
    gains = ("kept_share", "bandwidth_saved", "processing", "pipeline_speedup", "processing_share")
    found = {one.key.facts.distribution for one in numbers if one.study == "satellite" and one.quantity in gains}
    assert "scale" in found and "window" not in found


def test_a_run_without_some_parts_still_has_its_report(tmp_path: Path) -> None:
    """Without the byte budget, the pace, the streams and the longest clip, as a quick run."""
    report = one_study(tmp_path / "tiles", "satellite", without("method", "byte-budget"))
    assert set(satellite.picture(Frame.read(report / "numbers.csv")).kept) == {"fixed", "otsu"}
    draw("satellite_tiles", report / "numbers.csv", tmp_path / "tiles.pdf")
    short = without("workload", "clip-10s")
    report = one_study(tmp_path / "clips", "drone", lambda rows: without("layer", "paced", "pipelined")(short(rows)))
    assert drone.clips(View(Frame.read(report / "numbers.csv"), GPU, "drone")) == ["clip-1s", "clip-5s"]


def test_a_way_that_could_not_run_says_why(tmp_path: Path) -> None:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        lost, halved = rows["method"] == "two-processes-mps", rows["method"] == "two-streams"
        status = rows["status"].mask(lost, MethodStatus.UNAVAILABLE).mask(halved, MethodStatus.DIFFERENT)
        reason = rows["reason"].mask(lost, "no client came").mask(halved, "half precision")
        value, block = rows["value"].mask(lost), rows["block"].mask(lost, 0)
        return rows.assign(status=status, reason=reason, value=value, block=block).drop_duplicates()

    folder = one_study(tmp_path, "concurrency", change)
    judged = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    for text_of in (caption(folder, "concurrency"), judged["conc-mps"].reason):
        assert "no client came" in text_of
    assert [row[0] for row in lines(folder, "concurrency") if "\u2020" in row[1]] == ["Two streams"]
    # The source speaks of kernels that fill the GPU, which is a second sentence; another claim wants its own board.
    assert "precondition not met: kernels fill the GPU" in judged["conc-streams-overlap"].reason
    assert judged["conc-times"].reason == "needs an RTX 2060"


def test_two_networks_at_once_are_judged_by_rows_of_their_own(tmp_path: Path) -> None:
    factors = {"first-alone": 0.5, "sequential": 1, "two-threads": 1.5, "two-processes": 1.2, "batch": 0.9}

    def change(rows: pd.DataFrame) -> pd.DataFrame:
        factor = rows["method"].str.removesuffix("-again").map(factors)
        times = rows["workload"].isin(CONCURRENCY_PAIRS) & (rows["quantity"] == "makespan") & factor.notna()
        return rows.assign(value=rows["value"].mask(times, 10 * factor))

    folder = one_study(tmp_path, "concurrency", change)
    judged = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    found = {name: judged[f"conc-{name}"] for name in ("onnx-threads", "onnx-processes", "onnx-size", "batching")}
    assert {one.verdict for one in found.values()} == {"reproduced"}
    assert found["onnx-size"].measured == "3.00\u00d7" and found["onnx-size"].target.startswith("3")
    shown = [row[0] for row in lines(folder, "concurrency_sessions") if "1.50" in row[2] and "Two ONNX" in row[0]]
    assert shown == ["Two ONNX Runtime sessions: Two threads, two streams"]


@pytest.mark.parametrize(("measured", "expected"), [
    ((True, 3.2, 0.3, 0.1), QUADRANTS), ((True, 3.2, 0.3, 1.5), UNDECIDED), ((False, 3.2, 0.3, 0.1), UNDECIDED),
    ((True, 1.0, 0.3, 0.1), UNDECIDED), ((True, 1.0, 1.0, 40.0), HEURISTICS), ((False, 0.9, 1.1, 8.0), HEURISTICS),
    ((True, 1.0, 1.0, 0.5), UNDECIDED),
])  # fmt: skip
def test_the_cause_of_a_jump_in_memory_follows_the_rule(measured, expected):
    assert verdict(*measured) == expected


@pytest.mark.parametrize(
    ("gpus", "slow", "found"), [(2, 1.5, "reproduced"), (1, 1.0, "not reproduced"), (1, 1.1, "ambiguous")]
)
def test_tiles_over_two_gpus_and_sets_beyond_the_l2_are_judged(tmp_path, gpus, slow, found):
    shares = dict(zip(WORKING_SETS, (0.25, 0.5, 0.9, 2, 4, 16), strict=True))

    def change(rows: pd.DataFrame) -> pd.DataFrame:
        peak = rows[rows["quantity"] == "allocated_peak"].iloc[[0]]
        new = []
        for method, first, *second in (("as-published", 1.6e9), ("padded-whole", 4e9), ("tiles-two-gpus", 4.3e9, 4e9)):
            for quantity, value in zip(("allocated_peak", "allocated_peak_gpu1"), (first, *second), strict=False):
                row = peak.assign(workload="drunet-spread", n=1366, method=method, quantity=quantity, value=value)
                absent = {"value": np.nan, "status": "unavailable", "reason": "needs 2 GPUs of one host, here is 1"}
                new.append(row.assign(**absent) if gpus == 1 and method.startswith("tiles") else row)
        fixed = peak.assign(workload="drunet-working-set", n=16)
        new.append(fixed.assign(method="l2", quantity="cache", value=100))
        for name, share in shares.items():
            new += [fixed.assign(method=name, quantity="working_set", value=100 * share)]
            pixels = fixed.assign(method=name, quantity="pixels", layer="deterministic", unit="count")
            pixels = pixels.assign(value=1e6 * share)
            timed = pixels.assign(layer="device", quantity="convolutions", unit="ms")
            each = share * (slow if share > 1 else 1)
            again = {name, f"{name}-again"} if name == "nearly-l2" else {name}
            new += [pixels, *(timed.assign(method=one, block=block, value=each * (1 + block % 3 * 1e-3))
                              for one in again for block in range(30))]  # fmt: skip
        others = rows[~rows["workload"].isin({"drunet-spread", "drunet-working-set"})]
        return pd.concat([others, *new], ignore_index=True)

    folder = one_study(tmp_path, "image_shape", change)
    judged = {one.claim_id: one for one in read_claims(folder / "claims.csv")}
    assert judged["shape-l2"].verdict == found and judged["shape-one-gpu"].verdict == "reproduced"
    assert lines(folder, "shape_l2")[-len(WORKING_SETS)][-1].endswith("million/s")
    for name in ("shape-several-gpus", "shape-spread-more"):
        assert judged[name].verdict == ("reproduced" if gpus == 2 else "not measurable here")
        assert gpus == 2 or judged[name].reason == "needs 2 GPUs of one host, here is 1"


def test_machines_without_a_gpu_say_so_and_nothing_else(alone: Path) -> None:
    known = Frame.read(alone / "numbers.csv")
    for study, table in (("concurrency", "concurrency"), ("image_shape", "shape_cause")):
        assert "GPU" in known.text(f"shown.{study}.missing") and f"shown.{study}.measured" not in known
        assert "GPU" in caption(alone, table) and len(lines(alone, table)) == 2
        judged = [one for one in read_claims(alone / "claims.csv") if one.study == study]
        assert judged and {one.verdict for one in judged} == {"not measurable here"}
