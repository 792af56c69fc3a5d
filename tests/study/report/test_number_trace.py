"""``octopus trace`` says where a number comes from and where it is used."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_runs import CLAIMS, PAPER

from octopus.errors import InputError
from octopus_study.report import uses
from octopus_study.report.claims import load_claims
from octopus_study.report.frame import Frame
from octopus_study.report.trace import trace

HOST = "gpu.stage_timing.visdrone.n1000.octopus.end_to_end.host"


def lines(identifier: str, frame: Frame) -> str:
    return "\n".join(trace(identifier, frame, load_claims(CLAIMS), PAPER, CLAIMS))


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        (
            f"{HOST}.speedup_over_published",
            (
                "pretended-gpu.stage_timing",
                "method=octopus and published",
                "stage_timing.csv:",
                "report/measured.py:",
                "peers/fused.py:",
                "peers/published.py:",
                "data/results/pretended-gpu/stage_timing.csv",
                "abstract.typ:",
            ),
        ),
        (
            "published.stage_timing.n100.published.build_metadata",
            ("typed", "stage_timing.csv:2", "value 0.098"),
        ),
        ("shown.stage_timing", ("provenance", "in text")),
        ("one-launch-faster", ("claims.yaml:", "reproduced", "speedup_over_n-launches", "verdicts.typ:")),
    ],
)
def test_a_trace_names_every_station(identifier: str, parts: tuple[str, ...], numbers: Frame) -> None:
    text = lines(identifier, numbers)
    assert [part for part in parts if part not in text] == []


def test_an_unknown_id_suggests_near_ones(numbers: Frame) -> None:
    with pytest.raises(InputError, match=r"Did you mean.*end_to_end"):
        lines(f"{HOST}x", numbers)


@pytest.mark.parametrize(
    ("source", "identifier", "used"),
    [
        ('#let at = "gpu.a."\n#num(at + "b")', "m.a.b", True),
        ('#let at = "gpu.a."\n#num(at + "b")', "m.a.c", False),
        ('#for (scope, place) in places { let at = scope + ".a"; num(at + ".b") }', "m.a.b", True),
        ('#versus("gpu.a", "other")', "m.a.speedup_over_other", True),
        ('#best("gpu.a")', "m.a.best_peer", True),
        ('#said("m.a.b")', "m.a.b", False),
    ],
)
def test_ids_that_are_put_together_are_found(
    source: str, identifier: str, used: bool, tmp_path: Path
) -> None:
    (tmp_path / "section.typ").write_text(source, encoding="utf-8")
    frame = Frame([])
    frame.aliases = {"gpu": "m"}
    assert bool(list(uses.in_text(identifier, frame, tmp_path))) is used
