"""``octopus trace`` says where a number comes from and where it is used."""

import json
import shutil
from pathlib import Path

import pytest
from committed_runs import CLAIMS, GPU, PAPER

from octopus.errors import InputError
from octopus_study.report import uses
from octopus_study.report.claims import load_claims
from octopus_study.report.frame import Frame
from octopus_study.report.trace import recorded, trace

HOST = "gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"


def lines(identifier: str, frame: Frame) -> str:
    return "\n".join(trace(identifier, frame, load_claims(CLAIMS), PAPER, CLAIMS))


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        (
            f"{HOST}.speedup_over_published",
            f"{GPU}.stage_timing|method=octopus and published|stage_timing.csv:|report/measured.py:|"
            f"baselines/fused.py:|baselines/published.py:|data/results/{GPU}/stage_timing.csv|supplement/stage_timing.typ:",
        ),
        ("published.stage_timing.n100.published.build_metadata", "typed|stage_timing.csv:2|value 0.098"),
        ("shown.stage_timing", "provenance|in text"),
        ("one-launch-faster", "claims.yaml:|NVIDIA H100: |; rule > 1\u00d7|speedup_over_n-launches|claims.typ:"),
    ],
)
def test_a_trace_names_every_station(identifier: str, parts: str, numbers: Frame) -> None:
    text = lines(identifier, numbers)
    assert [part for part in parts.split("|") if part not in text] == []


@pytest.mark.parametrize(
    ("provenance", "parts", "absent"),
    [
        ({"command": "octopus measure x --out y"}, ("octopus measure x --out y", "commit 0123456789"), "; "),
        ({"git": {"commit": "abc", "dirty": True, "reason": "a copy"}}, ("commit abc; with changes; a copy",), "0123"),
        (None, ("commit 0123456789",), "measured by"),
    ],
)
def test_a_trace_prints_the_command_and_the_commit_that_the_provenance_has(
    provenance: dict | None, parts: tuple[str, ...], absent: str, numbers: Frame, tmp_path: Path
) -> None:
    number = numbers[HOST]
    rows = Path(shutil.copy(number.file, tmp_path))
    if provenance is not None:
        rows.with_suffix(".json").write_text(json.dumps(provenance))
    measured = "\n".join(line for line in recorded(number._replace(file=str(rows))))
    assert [part for part in parts if part not in measured] == [] and absent not in measured
    assert "measured at" in lines(HOST, numbers)


def test_a_number_that_nothing_shows_is_used_nowhere(numbers: Frame) -> None:
    text = lines("cpu.satellite.window-uint16.n16.octopus.keep_tiles.host.noise_floor", numbers)
    assert text.endswith("  used:         nowhere but in numbers.csv") and "  in " not in text


def test_no_reference_of_the_paper_is_to_every_number() -> None:
    assert list(uses.in_text("machine.study.workload.method.quantity", Frame([]), PAPER)) == []


def test_an_unknown_id_suggests_near_ones(numbers: Frame) -> None:
    with pytest.raises(InputError, match=r"Did you mean.*end_to_end"):
        lines(f"{HOST}x", numbers)


@pytest.mark.parametrize(
    ("source", "identifier", "used"),
    [
        ('#num("gpu.a.b.c.d")', "m.a.b.c.d", True),
        ('#let at = "gpu.a.b."\n#num(at + "c")', "m.a.b.c", True),
        ('#let at = "gpu.a.b."\n#num(at + "c")', "m.a.x.c", False),
        ('#for (scope, place) in places { num(scope + ".a.b.c") }', "m.a.b.c", True),
        ('#versus("gpu.a.b", "other")', "m.a.b.speedup_over_other", True),
        ('#said("one-claim")', "m.a.b", False),
    ],
)
def test_ids_that_are_put_together_are_found(source: str, identifier: str, used: bool, tmp_path: Path) -> None:
    (tmp_path / "section.typ").write_text(source, encoding="utf-8")
    frame = Frame([])
    frame.aliases = {"gpu": "m"}
    assert bool(list(uses.in_text(identifier, frame, tmp_path))) is used


def test_tables_and_figures_are_kept_beside_the_numbers(
    numbers: Frame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Till the numbers change: to find them anew, every table and figure is made."""
    folder = Path(shutil.copytree(numbers.folder, tmp_path / "build"))
    made = Frame.read(folder / "numbers.csv")
    found = [uses.in_tables(number, made) + uses.in_figures(number, made) for number in made]
    assert any(found)
    monkeypatch.setattr(uses, "watch", None)
    again = Frame.read(folder / "numbers.csv")
    assert [uses.in_tables(number, again) + uses.in_figures(number, again) for number in again] == found
    Frame(list(again)[:-1]).write(folder / "numbers.csv")
    with pytest.raises(TypeError, match="not callable"):
        uses.in_tables(again[HOST], Frame.read(folder / "numbers.csv"))
