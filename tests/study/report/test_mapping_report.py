"""The report of mapping, total cost and sequences: gains like for like, crossovers, and gaps said aloud."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from frames import caption, lines, matching
from synthetic_mapping import MEAN_ELEMENTS

from octopus_study.measure.dependence import PROCESS_BLOCKS
from octopus_study.names import IMAGE_MIXES, SEQUENCE_WORKLOADS
from octopus_study.report.frame import Frame
from octopus_study.report.samples import Group
from octopus_study.report.studies import sequences
from octopus_study.report.studies.total_cost import Costs, Draws, draw, together
from octopus_study.report.studies.total_cost_figures import OWNERS, TABLES
from octopus_study.report.view import View

GPU = "gpu.mapping"
COST = "gpu.total_cost"


def test_block_metadata_are_compared_with_the_search_of_their_width_alone(numbers: Frame) -> None:
    """One element per thread against one, several against several."""
    assert f"{GPU}.visdrone-multiply.n100000.block-metadata.kernel.device.speedup_over_thread-search" in numbers
    assert not matching(numbers, r"pretended-gpu\.mapping\..*\.(block-metadata|octopus)\..*_over_.*search-scalar")
    # A CPU reads owners one by one, whatever the search does.
    assert (
        "cpu.mapping.visdrone-multiply.n10000.block-metadata.kernel.host.speedup_over_thread-search-scalar" in numbers
    )


def test_ranges_hold_every_comparison(numbers: Frame) -> None:
    pair = "block-metadata.range_over_thread-search"
    whole = numbers[f"{GPU}.memory-bound.all.{pair}"]
    for distribution in ("tiny", "visdrone", "large"):
        part = numbers[f"{GPU}.memory-bound.{distribution}.{pair}"]
        assert whole.low <= part.low <= part.value <= part.high <= whole.high


def test_where_several_processes_measured_the_interval_is_over_them() -> None:
    """Blocks within a process tell less than processes: here each process has times of its own."""
    factors = np.repeat([1.0, 1.2, 1.1], 7)
    numbers = np.concatenate([process * PROCESS_BLOCKS + np.arange(7) for process in range(3)])
    table = pd.DataFrame(
        {"lookup-published": 2 * factors, "block-metadata": np.ones(21)}, index=pd.Index(numbers, name="block")
    )
    once = {name: draw(table[name]) for name in table}
    group = Group("synthetic", "flickr-500-light", 500, "kernel", "host")
    costs = Costs(group, once, {name: 0 * values for name, values in once.items()}, table, len(table))
    gain = costs.ratio("lookup-published", "block-metadata", 1)
    assert gain.processes == 3 and len(gain.values) == 4
    middle = gain.interval
    assert middle.value == pytest.approx(2 * (1.0 * 1.2 * 1.1) ** (1 / 3))
    assert middle.low < 2.0 and middle.high > 2.4 and middle.count == 21
    alone = table[:7]
    assert Draws(draw(alone["lookup-published"]), 7).interval[:3] == (2.0, 2.0, 2.0)
    assert [len(part) for part in together(table, table[:14])] == [14, 14]


def test_a_range_of_gains_is_that_of_the_workloads(numbers: Frame) -> None:
    place = "block-metadata-published.over_"
    for table in TABLES:
        gain = numbers[f"{COST}.gain.without_download.{place}{table}"]
        each = [
            numbers.value(f"{COST}.gain.without_download.{mix}-{kernel}.{place}{table}")
            for mix in IMAGE_MIXES
            for kernel in ("light", "heavy")
        ]
        assert (gain.low, gain.high) == (min(each), max(each))
    average = numbers[f"{COST}.average.without_download.{place}lookup-published"]
    light = [numbers.value(f"{COST}.gain.without_download.{mix}-light.{place}lookup-published") for mix in IMAGE_MIXES]
    assert average.value == pytest.approx(sum(light) / len(light))
    assert average.low <= average.value <= average.high and average.blocks >= 20


def test_reuse_is_judged_after_the_published_uses(numbers: Frame) -> None:
    uses = f"{numbers.value('published.amortisation.light.break_even'):g} kernels"
    published, compiled = (numbers[f"{COST}.reuse.break_even.light.lookup-published.over_{owner}"] for owner in OWNERS)
    assert uses in published.note and published.low < published.value < published.high
    # The published loop over the images takes longer: against it a table has less to catch up with.
    assert 1 < published.value < compiled.value


def test_sequences_have_an_average_over_all_mixes(numbers: Frame) -> None:
    keys = sequences.cases(View(numbers, "pretended-gpu", "sequences"))
    assert [key.workload for key in keys] == list(SEQUENCE_WORKLOADS)
    ratios = [numbers.value(key.but(method="block-metadata").speedup("lookup-published")) for key in keys]
    average = numbers.value("gpu.sequences.average.block-metadata.total_gain_over_lookup-published")
    assert average == pytest.approx(sum(ratios) / len(ratios))


def test_missing_sizes_are_lettered(full: Path) -> None:
    rows = {row[0]: row for row in lines(full, "mapping")}
    assert rows["Large, 100\u202f000"][2].startswith("unavailable (")
    size = f"needs {8 * 100_000 * MEAN_ELEMENTS['large'] / 2**30:.1f} GiB of memory"
    assert size in caption(full, "mapping")


def test_tables_show_published_beside_measured(full: Path, numbers: Frame) -> None:
    ladder = {row[0]: row for row in lines(full, "ladder")}
    rung = numbers.text(f"{COST}.flickr-500-light-ladder.n500.octopus.kernel.device.speedup_over_linear-search")
    assert ladder["Linear search by every thread"][3] == rung
    assert ladder["One thread per image"][1] == "252\u00d7"
    rows = {row[0]: row for row in lines(full, "tuner")}
    assert rows["C over B, one element, multiply, VisDrone, most items"][1] == "3.17\u00d7"
