"""What one GPU, a node and many nodes serve: the arithmetic, and the page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from synthetic_images import BATCHES
from synthetic_pipelines import PREPARED, STEP
from synthetic_runs import REFERENCE, ROOT, write_run
from synthetic_scaling import BLOCK, WORKS, linear
from typer.testing import CliRunner

from octopus_study.cli.report_commands import report
from octopus_study.measure.statistics import Interval
from octopus_study.report.capacity import Fleet, Stages, corners, gpu_hours, saved
from octopus_study.report.many_doc import many_doc

Once = Callable[[str, Callable[[Path], object]], Path]
STUDIES = ("images", "pipelines", "power", "scaling")
RUNS = (*STUDIES, "stage_timing")
BY_HAND = Stages(
    100, Interval(2, 1, 2.5, 30), Interval(1, 0.9, 1.2, 20), Interval(3, 2, 4, 40), Interval(6, 5, 8, 40)
)
SHARE = Interval(0.8, 0.5, 1, 24)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (BY_HAND.rate, (100 / 0.005, 100 / 0.0065, 100 / 0.003, 30)),
        (BY_HAND.overlapped, (100 / 0.003, 100 / 0.004, 100 / 0.002, 20)),
        (BY_HAND.upload_share, (3 / 5, 2 / 4.5, 4 / 5, 30)),
        (BY_HAND.of_gpus(4, SHARE), (400 / 0.0085, 400 / 0.013, 400 / 0.006, 1)),
        (gpu_hours(Interval(1000, 500, 2000, 20)), (1 / 3.6, 1 / 7.2, 1 / 1.8, 20)),
        (saved(Interval(4, 2, 5, 20), 1000), (750, 500, 800, 20)),
    ],
)
def test_the_model_by_hand(result: Interval, expected: tuple[float, ...]) -> None:
    assert result == pytest.approx(expected)


def test_an_interval_holds_what_its_inputs_can_give() -> None:
    rng = np.random.default_rng(3)
    low, width = rng.uniform(0.1, 9, (2, 3))
    inputs = [Interval(*ends, 20) for ends in zip(low + width / 3, low, low + width, strict=True)]
    result = corners(lambda a, b, c: (a + b) / c, *inputs)
    within = rng.uniform(low, low + width, (500, 3))
    values = (within[:, 0] + within[:, 1]) / within[:, 2]
    assert result.low <= values.min() and values.max() <= result.high
    assert result.low < result.value < result.high


def test_what_has_no_interval_gives_none() -> None:
    once = BY_HAND._replace(work=Interval(2, np.nan, np.nan, 1)).rate
    assert once.value == pytest.approx(20_000) and np.isnan([once.low, once.high]).all()


def test_the_committed_page_is_what_the_command_writes(tmp_path: Path) -> None:
    out = tmp_path / "many.md"
    result = CliRunner().invoke(
        report, ["many", "--out", str(out), "--reference", str(REFERENCE)], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert out.read_text("utf-8") == (ROOT / "docs" / "many.md").read_text("utf-8")


@pytest.fixture(scope="module")
def reference(once: Once) -> Path:
    """A pretended GPU and a CPU with the studies that the page reads."""

    def fill(root: Path) -> None:
        for kind in ("gpu", "cpu"):
            write_run(root, f"pretended-{kind}", kind, only=RUNS)

    return once("many", fill)


def row_of(text: str, *begin: str) -> list[str]:
    """The cells of the one row that begins so."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (found,) = (row for row in rows if tuple(row[: len(begin)]) == begin)
    return found


def value(cell: str) -> float:
    """The value of a cell, which lies within its interval."""
    digits, _, ends = cell.partition(" [")
    number = float(digits.removesuffix(" %").replace("\u202f", ""))
    low, high = (float(end.replace("\u202f", "")) for end in ends.rstrip("]").split("\u2013"))
    assert low < number < high
    return number


def test_the_page_of_a_gpu_follows_from_its_rows(reference: Path) -> None:
    text = many_doc(reference)
    assert "Pretended CPU" not in text
    count, _, nbytes, written, _ = BATCHES["thumbnails"]
    work = (nbytes + written) / 4.2e9 / 0.65
    gb_s = WORKS["copies"] * 2**20 / 1e6 / BLOCK["uploaded"]
    alone, at_once = (nbytes / 1e6 / gb_s / share for share in (1, linear("processes", "uploaded", 4)))
    name = "256 of 256 to 1024 px to 224\u00b2"
    row = row_of(text, name, "uploaded")
    node = 8 * count / (work / linear("processes", "resident", 4) + at_once) * 1000
    assert value(row[2]) == pytest.approx(1000 * count / (work + alone), rel=0.03)
    assert value(row[3]) == pytest.approx(1000 * count / alone, rel=0.03)
    assert value(row[4]) == pytest.approx(100 * alone / (work + alone), rel=0.01)
    assert value(row[5]) == pytest.approx(node, rel=0.03)
    assert value(row[6]) == pytest.approx(node * nbytes / count / 1e9, rel=0.03)
    assert value(row[7]) == pytest.approx(node / 1000, rel=0.03)
    assert value(row[8]) == pytest.approx(1e6 / 3600 / (node / 8), rel=0.03)
    assert value(row[9]) == pytest.approx(2 * value(row[8]), rel=0.01)
    there = row_of(text, name, "on the GPU")
    assert value(there[2]) == pytest.approx(1000 * count / work, rel=0.03) and there[4] == "\u2013"


def test_what_a_change_of_import_frees(reference: Path) -> None:
    text = many_doc(reference)
    own, other = (row_of(text, "32: 512 to 2048 px", name) for name in ("Octopus", "transformers"))
    for row, method in ((own, "octopus"), (other, "transformers")):
        prepare, step = PREPARED[method], STEP[method]
        node = prepare / linear("processes", "uploaded", 4) + (step - prepare) / linear(
            "processes", "resident", 4
        )
        assert value(row[3]) == pytest.approx(100 * prepare / step, rel=0.03)
        assert value(row[4]) == pytest.approx(32_000 / step, rel=0.03)
        assert value(row[5]) == pytest.approx(8 * 32_000 / node, rel=0.03)
    in_turn = 32_000 / value(row_of(text, "32 of 512 to 2048 px, rows", "uploaded")[2])
    assert value(own[2]) == pytest.approx(PREPARED["octopus"] / in_turn, rel=0.03) and other[2] == "\u2013"
    assert value(own[9]) == pytest.approx(1000 * (1 - STEP["octopus"] / STEP["transformers"]), rel=0.02)
    assert other[9:] == ["\u2013"]


def test_energy_goes_with_the_rate_of_its_windows(reference: Path) -> None:
    row = row_of(many_doc(reference), "100")
    rate, kernel, node, watts, joules = (value(row[index]) for index in (1, 2, 3, 4, 8))
    share = linear("processes", "resident", 4)
    assert node == pytest.approx(8 * rate * share, rel=0.03)
    assert watts == pytest.approx(node / share * joules / 1000, rel=0.03)
    assert kernel > 0


def test_a_reader_sets_gpus_nodes_and_the_price(reference: Path) -> None:
    name = ("32 of 512 to 2048 px, rows", "uploaded")
    usual, other = (
        row_of(many_doc(reference, fleet), *name) for fleet in (Fleet(), Fleet(gpus=4, nodes=500, price=3))
    )
    assert value(other[5]) == pytest.approx(value(usual[5]) / 2, rel=0.01)
    assert value(other[7]) == pytest.approx(value(usual[7]) / 4, rel=0.01)
    assert other[8] == usual[8] and value(other[9]) == pytest.approx(1.5 * value(usual[9]), rel=0.01)


def test_the_page_holds_the_model_against_several_gpus(reference: Path) -> None:
    several, _, held = many_doc(reference).partition("### Held against several GPUs")
    assert row_of(held, "Ragged images, weak", "4")[4].startswith("0.98")
    shares = row_of(several.partition("### Several GPUs of one host")[2], "Ragged images, weak", "4")
    assert float(shares[4].split()[0]) == pytest.approx(100 * linear("processes", "resident", 4), abs=0.3)


@pytest.mark.parametrize("study", STUDIES)
def test_what_has_no_rows_says_so(study: str, tmp_path: Path, reference: Path) -> None:
    (tmp_path / "pretended-gpu").mkdir()
    for path in (reference / "pretended-gpu").glob("*"):
        if path.stem.partition(".")[0] != study and path.is_file():
            (tmp_path / "pretended-gpu" / path.name).write_bytes(path.read_bytes())
    text = many_doc(tmp_path)
    said = {
        "images": "Batches of images: not measured yet.",
        "pipelines": "Steps of a model with Octopus and with transformers: no run at hand has them.",
        "power": "Energy: not measured yet",
        "scaling": "Nothing is predicted: no run of the study scaling",
    }
    assert [name for name, words in said.items() if words in text] == [study]
    assumed = row_of(text, "Share of linear, ragged images, weak")
    assert (assumed[1] == "1", "not measured yet" in assumed[2]) == ((study == "scaling"),) * 2
    if study == "scaling":
        cells = row_of(text, "32 of 512 to 2048 px, rows", "uploaded")
        assert cells[2:] == ["not measured yet", *["\u2013"] * 7]


def test_without_a_gpu_there_is_nothing_to_say(tmp_path: Path) -> None:
    write_run(tmp_path, "pretended-cpu", "cpu", only=STUDIES)
    assert many_doc(tmp_path).endswith("No reference machine with a GPU has such rows yet.\n")
