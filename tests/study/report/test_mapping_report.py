"""The report of mapping, total cost and sequences: gains, crossovers, verdicts by rule, and gaps said aloud."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import build_report, caption, lines, matching
from matplotlib.text import Text
from synthetic_mapping import ITEMS, MEAN_ELEMENTS, MIXES, OPERATIONS
from synthetic_runs import sign, write_run

from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.names import IMAGE_MIXES, SEQUENCE_WORKLOADS
from octopus_study.report.claims import read_claims
from octopus_study.report.frame import Frame, Key
from octopus_study.report.studies import sequences
from octopus_study.report.studies.mapping_numbers import kind_of
from octopus_study.report.studies.total_cost_reuse import (
    OWNERS,
    Cost,
    Draws,
    Sampled,
    cost,
    crossover,
    draw,
    together,
)
from octopus_study.report.studies.total_cost_reuse import TABLES as LOOKUPS
from octopus_study.report.view import View

GPU = "gpu.mapping"
COST = "gpu.total_cost"
STUDIES = ("mapping", "total_cost", "sequences")


@pytest.fixture(scope="module")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with one GPU that the cost model knows."""
    root = tmp_path_factory.mktemp("h200")
    folder = write_run(root / "reference", "nvidia-h200", "gpu", only=STUDIES, tensorrt=True)
    for path in folder.glob("*.json"):
        path.write_text(path.read_text().replace("Pretended GPU", "NVIDIA H200"))
    return build_report(root / "report", None, root / "reference")


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("tiny-multiply", ("tiny", "multiply", "float32")),
        ("visdrone-blur5x5-sobel", ("visdrone", "blur5x5-sobel", "float32")),
        ("large-threshold-uint8", ("large", "threshold", "uint8")),
        ("large-blur5x5-sobel-uint8", ("large", "blur5x5-sobel", "uint8")),
    ],
)
def test_a_workload_is_taken_apart(workload: str, expected: tuple[str, str, str]) -> None:
    assert kind_of(workload) == expected


def test_block_metadata_are_compared_with_the_search_of_their_width_alone(numbers: Frame) -> None:
    """One element per thread against one, several against several; what several add is a comparison of its own."""
    key = f"{GPU}.{{}}-multiply.n100000.{{}}.kernel.device.{{}}_over_{{}}".format
    for batch, method, other, ratio, verdict in (
        ("visdrone", "block-metadata-scalar", "thread-search-scalar", 1.015, ""),
        ("visdrone", "block-metadata", "thread-search", 1.05 / 1.09, "slower"),
        ("visdrone", "block-metadata", "block-metadata-scalar", 1.3 / 1.09, "faster"),
        ("visdrone", "thread-search", "thread-search-scalar", 1.25, "faster"),
        ("visdrone", "lookup", "lookup-scalar", 1.7 / 1.56, "faster"),
    ):
        found = numbers[key(batch, method, "speedup", other)]
        assert found.low < found.value < found.high and found.value == pytest.approx(ratio, abs=0.02)
        assert numbers.text(key(batch, method, "verdict", other)) == verdict or not verdict
    assert not matching(
        numbers, r"pretended-gpu\.mapping\..*\.(block-metadata|octopus)\..*_over_.*search-scalar"
    )
    # A CPU reads owners one by one, whatever the search does.
    assert (
        "cpu.mapping.visdrone-multiply.n10000.block-metadata.kernel.host.speedup_over_thread-search-scalar"
        in numbers
    )


def test_the_copy_bound_gives_shares_of_pointwise_operations_alone(numbers: Frame) -> None:
    key = f"{GPU}.large-{{}}.n10000.octopus.kernel.device.share_of_copy-bound"
    assert numbers.value(key.format("multiply")) == pytest.approx(1 / 1.06, abs=0.01)
    assert key.format("blur3x3") not in numbers
    assert not matching(numbers, r".*octopus-again\.kernel\.\w+\.share_of_copy-bound")


def test_ranges_hold_every_comparison_of_their_class(numbers: Frame) -> None:
    pair = "block-metadata.range_over_thread-search"
    for name in ("memory-bound", "compute-bound"):
        whole = numbers[f"{GPU}.{name}.all.{pair}"]
        for distribution in ("tiny", "visdrone", "large"):
            part = numbers[f"{GPU}.{name}.{distribution}.{pair}"]
            assert whole.low <= part.low <= part.value <= part.high <= whole.high
        assert "\u2013" in whole.text


def test_gains_and_losses_are_counted_at_each_width(numbers: Frame) -> None:
    several, one = (numbers.text(f"{GPU}.memory-bound.{width}.appears") for width in ("vector", "scalar"))
    assert re.fullmatch(
        r"faster in \d of 15 comparisons.*; slower in \d+ of 15 comparisons, most in .*", several
    )
    assert re.fullmatch(r"faster in 0 of 15 comparisons; slower in [1-9] of 15 comparisons, most in .*", one)
    assert f"{GPU}.memory-bound.appears" not in numbers


def test_targets_are_judged_by_rule(numbers: Frame) -> None:
    outcomes = {
        name: numbers[f"{GPU}.target.{name}"] for name in ("not_slower", "build", "regret", "copy_share")
    }
    assert [outcomes[name].note for name in ("not_slower", "build", "regret")] == ["met"] * 3
    # Gamma is pointwise too, and its arithmetic takes longer than the copy.
    assert outcomes["copy_share"].note == "missed in 1 of 4" and "gamma" in outcomes["copy_share"].text
    assert outcomes["build"].value == pytest.approx(22, rel=0.02)
    # Large items need more memory than the pretended CPU has.
    assert "cpu.mapping.target.copy_share" not in numbers


def test_a_slower_kernel_misses_its_target(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "pretended-gpu", "gpu", only=STUDIES)
    path = folder / "mapping.csv"
    changed = []
    for line in path.read_text().splitlines():
        parts = line.split(",")
        if parts[2] == "tiny-multiply" and parts[4].startswith("octopus") and parts[6] == "kernel":
            parts[9] = repr(1.1 * float(parts[9]))
        changed.append(",".join(parts))
    path.write_text("\n".join(changed) + "\n")
    sign(path)
    known = Frame.read(build_report(tmp_path / "report", None, tmp_path / "reference") / "numbers.csv")
    target = known[f"{GPU}.target.not_slower"]
    assert target.note == f"missed in {len(ITEMS)} of {5 * len(OPERATIONS) + 1}"
    assert "multiply" in target.text and "tiny items" in target.text


@pytest.mark.parametrize(
    ("saved", "dearer", "uses"),
    [(0.1, 5.05, 51.0), (0.1, -1.0, 1.0), (0.0, 5.0, math.inf), (0.0, -5.0, 1.0), (-0.1, -5.0, math.inf)],
)
def test_crossovers(saved: float, dearer: float, uses: float) -> None:
    assert crossover(np.array([saved]), np.array([dearer])).tolist() == [uses]
    if math.isfinite(uses) and saved > 0 and dearer > 0:
        table, other = Cost(dearer, 1.0), Cost(0.0, 1.0 + saved)
        assert table.after(uses) < other.after(uses) and table.after(uses - 1) >= other.after(uses - 1)


def test_where_several_processes_measured_the_interval_is_over_them() -> None:
    """Blocks within a process tell less than processes: here each process has times of its own."""
    factors = np.repeat([1.0, 1.2, 1.1], 7)
    numbers = np.concatenate([process * PROCESS_BLOCKS + np.arange(7) for process in range(3)])
    table = pd.DataFrame(
        {"lookup-published": 2 * factors, "block-metadata": np.ones(21)},
        index=pd.Index(numbers, name="block"),
    )
    once = {name: draw(table[name]) for name in table}
    costs = Sampled(once, {name: 0 * values for name, values in once.items()}, table, len(table))
    gain = costs.ratio("lookup-published", "block-metadata", 1)
    assert gain.processes == 3 and len(gain.values) == 4
    middle = gain.interval
    assert middle.value == pytest.approx(2 * (1.0 * 1.2 * 1.1) ** (1 / 3))
    assert middle.low < 2.0 and middle.high > 2.4 and middle.count == 21
    alone = table[:7]
    assert Draws(draw(alone["lookup-published"]), 7).interval[:3] == (2.0, 2.0, 2.0)
    never = Draws(np.array([math.inf, math.inf, math.inf, math.inf]), 21, 3).interval
    undecided = Draws(np.array([9.0, 8.0, math.inf, 9.0]), 21, 3).interval
    assert math.isinf(never.low) and math.isinf(undecided.high) and undecided.low == 8.0
    assert [len(part) for part in together(table, table[:14])] == [14, 14]


def test_a_table_pays_after_so_many_uses(numbers: Frame) -> None:
    start = f"{COST}.flickr-500-light.n500"
    uses = numbers[f"{start}.lookup-device.crossover_over_block-metadata"]
    assert uses.low <= uses.value <= uses.high
    case = Key("pretended-gpu", "total_cost", "flickr-500-light", 500)
    table, ours = (cost(numbers, case, name) for name in ("lookup-device", "block-metadata"))
    assert table.after(3 * uses.high) < ours.after(3 * uses.high)
    assert table.after(uses.low / 3) > ours.after(uses.low / 3)
    never = {numbers.text(f"{start}.{name}.crossover_over_octopus") for name in LOOKUPS}
    assert never <= {"never", "undecided"}


def test_gains_are_published_ones_side_by_side(numbers: Frame) -> None:
    for table in LOOKUPS:
        gain = numbers[f"{COST}.gain.without_download.block-metadata.over_{table}"]
        each = [
            numbers.value(f"{COST}.gain.without_download.{mix}-{kernel}.block-metadata.over_{table}")
            for mix in IMAGE_MIXES
            for kernel in ("light", "heavy")
        ]
        assert (gain.low, gain.high) == (min(each), max(each))
    for owner, size in zip(OWNERS, (20, 12), strict=True):  # bytes of an entry; the offsets every batch has
        memory = numbers.value(f"{COST}.gain.memory.flickr-500-light.{owner}.over_lookup-published")
        assert memory == pytest.approx(4 * 89_416_278 / (size * 1549))


def test_a_published_entry_takes_twenty_bytes(numbers: Frame) -> None:
    entry = numbers["published.derived.pipeline_images.bytes_per_block"]
    assert 19.99 < entry.low <= entry.value <= entry.high < 20.01


def test_averages_are_those_of_the_mixes_with_the_light_kernel(numbers: Frame) -> None:
    for name in ("setup", "upload", "memory", "kernel", "total", "without_download"):
        each = [
            numbers.value(f"{COST}.gain.{name}.{mix}-light.block-metadata-published.over_lookup-published")
            for mix in IMAGE_MIXES
        ]
        average = numbers[f"{COST}.average.{name}.block-metadata-published.over_lookup-published"]
        assert average.value == pytest.approx(sum(each) / len(each))
        assert name == "memory" or (average.low <= average.value <= average.high and average.blocks >= 20)
    heavy = numbers[f"{COST}.gain.total.flickr-500.block-metadata.heavy_over_lookup-published"]
    assert heavy.low <= heavy.value <= heavy.high < 1


def test_what_survives_a_fair_table_is_said_by_rule(numbers: Frame) -> None:
    text = numbers.text(f"{COST}.gain.without_download.block-metadata-published.survives")
    assert "filled image by image it is reached (" in text
    assert "filled by one call it is reached (" in text
    assert "built on the device it is not reached (" in text
    text = numbers.text("cpu.total_cost.gain.total.block-metadata-published.survives")
    assert "in part" in text and "device" not in text


def test_reuse_is_judged_after_the_published_uses(numbers: Frame) -> None:
    key = f"{COST}.reuse.break_even.light.{{}}.over_{{}}".format
    uses = f"{numbers.value('published.amortisation.light.break_even'):g} kernels"
    for owner in OWNERS:
        table, device = (numbers[key(name, owner)] for name in ("lookup-published", "lookup-device"))
        assert table.value > 10 > 1 > device.value and uses in table.note
        assert table.low < table.value < table.high and table.blocks >= 20
    # The published loop over the images takes longer: against it a table catches up earlier.
    assert numbers.value(key("lookup-device", OWNERS[0])) < numbers.value(key("lookup-device", OWNERS[1]))
    start = f"{COST}.flickr-500-heavy.n500.lookup-device.crossover_over_"
    assert numbers.value(start + OWNERS[0]) <= numbers.value(start + OWNERS[1])


def test_sequences_have_an_average_over_all_mixes(numbers: Frame) -> None:
    keys = sequences.cases(View(numbers, "pretended-gpu", "sequences"))
    assert [key.workload for key in keys] == list(SEQUENCE_WORKLOADS)
    ratios = [numbers.value(key.but(method="block-metadata").speedup("lookup-published")) for key in keys]
    average = numbers.value("gpu.sequences.average.block-metadata.total_gain_over_lookup-published")
    assert average == pytest.approx(sum(ratios) / len(ratios))
    memory = [4 * elements / (20 * n) for n, elements, _ in MIXES.values()]
    average = numbers.value(
        "gpu.sequences.average.block-metadata-published.memory_gain_over_lookup-published"
    )
    assert average == pytest.approx(sum(memory) / len(memory))
    assert "torch is not installed" in numbers.text(keys[0].but(method="nested-jagged"))


def test_a_figure_names_who_has_no_time_in_some_cases(numbers: Frame) -> None:
    failed = Key("pretended-gpu", "sequences", "nlp-10k", 10_000, "padded", "total", "host")
    lost = (failed.id, failed.but(method="octopus").speedup("padded").id)
    why = "unavailable: out of memory"
    kept = (number._replace(value=math.nan, text=why) if number.id in lost else number for number in numbers)
    words = " ".join(text.get_text() for text in sequences.draw(Frame(kept)).findobj(Text)).split()
    for said in (
        "PyTorch (nested, jagged): torch is not",
        "Padded to the longest (NLP, 10 K): out of memory;",
    ):
        assert said in " ".join(words)


def test_the_model_is_fitted_on_half_of_the_cases_and_checked_on_the_others(h200: Path) -> None:
    known = Frame.read(h200 / "numbers.csv")
    step, cycles = (known[f"{GPU}.costmodel.{name}"] for name in ("step", "step_cycles"))
    # The pretended searches take 40 ns per step; a scalar kernel that streams slower than the bound looks like more.
    assert 30 < step.value < 120
    assert cycles.value == pytest.approx(step.value * 1.98)
    assert "did not see" in known[f"{GPU}.costmodel.check_error"].note
    assert known.value(f"{GPU}.costmodel.check_error") < 0.25
    sentence = known.text(f"{GPU}.costmodel.sentence")
    assert sentence.count("agree") == 3 and "Jetson Orin Nano" in sentence and "about equal" in sentence
    for name in ("jetson-orin-nano", "t4", "rtx-4090"):
        predicted = known[f"{GPU}.costmodel.{name}.predicted"]
        assert predicted.low <= predicted.high and predicted.value > 0.9
    jetson, rtx = (
        known.value(f"{GPU}.costmodel.{name}.predicted") for name in ("jetson-orin-nano", "rtx-4090")
    )
    assert jetson >= rtx
    assert any("agree" in cell for row in lines(h200, "mapping_model") for cell in row)


def test_a_gpu_that_the_model_does_not_know_gets_a_reason(numbers: Frame, full: Path) -> None:
    assert numbers.text(f"{GPU}.costmodel.step").startswith(
        "unavailable: the threads in flight of Pretended GPU"
    )
    assert f"{GPU}.costmodel.sentence" not in numbers
    assert "not in the model's table" in (full / "tables" / "mapping_model.md").read_text("utf-8")


def test_claims_of_directions_are_judged_on_a_gpu_and_sizes_on_their_board(full: Path) -> None:
    judged = {(one.claim_id, one.scope): one for one in read_claims(full / "claims.csv")}
    for name in ("cost-faster", "cost-kernel", "cost-memory", "seq-faster", "ladder-linear"):
        assert judged[name, "pretended-gpu"].verdict == "reproduced"
    for name in ("reuse-light", "map-gain-vector-visdrone"):
        assert judged[name, "pretended-gpu"].verdict == "not reproduced"
    assert judged["map-t4-100k", "pretended-gpu"].reason == "needs a T4"
    assert judged["cost-setup-size", "pretended-cpu"].reason == "needs an RTX 4090"
    assert judged["map-tuner-time", "pretended-cpu"].verdict == "reproduced"
    assert judged["map-table-size", "here"].verdict == "reproduced"


def test_sizes_are_judged_on_the_published_board(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "reference", "t4", "gpu", only=STUDIES)
    for path in folder.glob("*.json"):
        path.write_text(path.read_text().replace("Pretended GPU", "Tesla T4"))
    report = build_report(tmp_path / "report", None, tmp_path / "reference")
    judged = {one.claim_id: one for one in read_claims(report / "claims.csv")}
    assert judged["map-t4-500k"].reason.startswith("not in the rows")
    assert judged["map-rtx-4090"].reason == "needs an RTX 4090"


def test_missing_sizes_are_lettered(full: Path) -> None:
    rows = {row[0]: row for row in lines(full, "mapping")}
    assert rows["Large, 100\u202f000"][2].startswith("unavailable (")
    size = f"needs {8 * 100_000 * MEAN_ELEMENTS['large'] / 2**30:.1f} GiB of memory"
    assert size in caption(full, "mapping")


def test_tables_show_published_beside_measured(full: Path, numbers: Frame) -> None:
    gains = lines(full, "total_gains")
    assert ["Setup", "210\u00d7", "134\u00d7", "79\u00d7", "124\u00d7", "193\u00d7"] in gains
    ladder = {row[0]: row for row in lines(full, "ladder")}
    assert ladder["Linear search by every thread"][3] == numbers.text(f"{COST}.ladder.linear-search")
    assert ladder["One thread per image"][1] == "252\u00d7"
    assert {"151", "53"} <= {row[1] for row in lines(full, "amortisation")}
    rows = {row[0]: row for row in lines(full, "tuner")}
    assert rows["C over B, one element, multiply, VisDrone, most items"][1] == "3.17\u00d7"
    assert rows["Longest probe"][2] == numbers.text("here.mapping.tuner.probe")
