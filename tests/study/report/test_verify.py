"""``octopus verify`` is green on what was built of the rows, and red where something differs."""

import dataclasses
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from committed_runs import CLAIMS, PAPER, PUBLISHED
from frames import TIME, number

from octopus_study.report.committed import stored
from octopus_study.verify import checks
from octopus_study.verify.recomputed import texts
from octopus_study.verify.scene import Paths, Scene

WALKS = tuple(name for name in checks.CHECKS if name not in ("figures", "committed"))


@pytest.fixture(scope="module")
def paths(runs: Path, full: Path) -> Paths:
    return Paths(runs / "results", runs / "reference", PUBLISHED, CLAIMS, PAPER, full, full / "figures")


@pytest.fixture(scope="module")
def scene(paths: Paths) -> Scene:
    return Scene(paths)


@pytest.mark.parametrize("name", WALKS)
def test_a_report_follows_from_its_rows(name: str, scene: Scene) -> None:
    (result,) = checks.run(scene, [name])
    assert result.outcome.faults == [] and result.outcome.count > 0, result.line


@pytest.mark.parametrize(("text", "wrong"), [("1.50\u00d7", 0), ("1.60\u00d7", 1), ("150 %", 1), ("1.5 ms", 1)])
def test_a_ratio_is_shown_as_a_ratio_of_its_value(text: str, wrong: int) -> None:
    shown = number(TIME, "ratio", 1.5)._replace(text=text)
    assert len(texts(SimpleNamespace(frame=[shown])).faults) == wrong


def test_a_core_run_is_looked_for_in_its_own_folder(paths: Paths, scene: Scene, tmp_path: Path) -> None:
    assert scene.results is not None and scene.results.parent == paths.results
    build = shutil.copytree(paths.build, tmp_path / "build")
    moved = (build / "numbers.csv").read_text().replace(f"{paths.results}/", f"{paths.results}/core/")
    (build / "numbers.csv").write_text(moved)
    with Scene(dataclasses.replace(paths, build=build)) as core:
        assert core.results == paths.results / "core" / scene.results.name


@pytest.mark.parametrize(("name", "file", "old", "new"), [
    ("numbers", "numbers.csv", ",ms,", ",us,"),
    ("tables", "tables/claims_published.md", "reproduced", "refuted"),
    ("verdicts", "claims.csv", "reproduced", "refuted"),
    ("numbers", "numbers.json", "\u00d7", "x"),
])  # fmt: skip
def test_what_was_changed_after_it_was_built_is_named(name, file, old, new, paths, scene, tmp_path):
    build = shutil.copytree(paths.build, tmp_path / "build")
    text = (build / file).read_text(encoding="utf-8")
    (build / file).write_text(text.replace(old, new, 1), encoding="utf-8", newline="")
    with Scene(dataclasses.replace(paths, build=build)) as changed:
        # The rows are the same, and so is what follows from them.
        vars(changed).update(derived=scene.derived, judgements=scene.judgements)
        (result,) = checks.run(changed, [name])
    assert len(result.outcome.faults) >= 1


def test_what_is_committed_for_visitors_is_compared_byte_for_byte(scene: Scene, paths: Paths, tmp_path: Path) -> None:
    made, figures, paper, notebooks = (tmp_path / name for name in ("made", "figures", "paper", "notebooks"))
    with Scene(dataclasses.replace(paths, figures=figures, paper=paper, notebooks=notebooks)) as visited:
        vars(visited)["committed"] = made
        places = stored(figures, paper, notebooks)
        for folder in (made, figures / "reference", paper, notebooks):
            folder.mkdir(parents=True)
        for name, path in places.items():
            (made / name).write_bytes(name.encode())
            path.write_bytes(name.encode())
        assert checks.CHECKS["committed"](visited)[:2] == (len(places), [])
        first, second, *_, pdf, shown, _ = places.values()
        first.write_bytes(b"changed")
        second.unlink()
        pdf.write_bytes(pdf.read_bytes() + b"more")
        shown.write_bytes(b"run on another machine")
        (figures / "reference/old.png").write_bytes(b"of a figure that is gone")
        faults = checks.CHECKS["committed"](visited).faults
    wrong = {first.name, second.name, pdf.name, shown.name, "old.png"}
    assert {Path(fault.partition(":")[0]).name for fault in faults} == wrong


def test_what_is_committed_for_visitors_is_of_these_references(references: Path, root: Path) -> None:
    with Scene(dataclasses.replace(Paths().below(root), build=references)) as scene:
        vars(scene)["results"] = None
        assert any(one.other == "best_baseline" and "a second run" in one.note for one in scene.frame)
        assert checks.CHECKS["ratios"](scene).faults == checks.CHECKS["committed"](scene).faults == []
