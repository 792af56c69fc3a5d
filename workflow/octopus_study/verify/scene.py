"""What is verified: where everything lies, and what was built of it."""

import tempfile
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from octopus_study.measure.machine import available_cores
from octopus_study.report.build import build_numbers, numbers_of, vetted
from octopus_study.report.claims import Judgement, build_claims, judge_all
from octopus_study.report.committed import NOTEBOOKS, with_outputs, write_committed
from octopus_study.report.frame import HERE, Frame
from octopus_study.report.outputs import build_tables, draw_all
from octopus_study.report.runs import Run, load_runs


class Outcome(NamedTuple):
    """How a check ended."""

    count: int  # what was compared
    faults: list[str]  # what differs, by name; nothing when all is well
    note: str = ""  # what stands beside the count


CORE = "core"  # the folder of core runs among the results; config/core.yaml names it


@dataclass(frozen=True)
class Paths:
    """Files and folders of a checkout, relative to it."""

    results: Path = Path("data/results")  # one folder per machine; it may be absent
    reference: Path = Path("data/reference")
    published: Path = Path("data/published")
    claims: Path = Path("config/claims.yaml")
    paper: Path = Path("paper")
    build: Path = Path("paper/build")
    figures: Path = Path("figures")
    notebooks: Path = Path("notebooks")

    def below(self, root: Path) -> Self:
        """Return the same paths of a checkout elsewhere."""
        return type(self)(*(root / getattr(self, field.name) for field in fields(self)))


class Scene:
    """Everything that checks look at, each part made once, when it is first asked for."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self._folder = tempfile.TemporaryDirectory(prefix="octopus-verify-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    @property
    def scratch(self) -> Path:
        """A folder that goes with the scene."""
        return Path(self._folder.name)

    @property
    def is_built(self) -> bool:
        """Whether there is a report that was built before."""
        return (self.paths.build / "numbers.csv").is_file()

    @cached_property
    def built(self) -> Path:
        """The folder with numbers, claims and tables: that of the paper, or one that is made for this."""
        return self.paths.build if self.is_built else build(self.paths, None, self.scratch)

    @cached_property
    def drawn(self) -> Path:
        """A folder with all figures, drawn anew from these numbers."""
        draw_all(self.built / "numbers.csv", self.scratch / "figures", available_cores())
        return self.scratch / "figures"

    @cached_property
    def committed(self) -> Path:
        """A folder with what is committed for those who build nothing, made anew from the references alone."""
        out, built, drawn = self.scratch / "committed", self.built, self.scratch / "of-references"
        if self.results is None:
            drawn = self.drawn
        else:
            built = build(self.paths, None, drawn)
            draw_all(built / "numbers.csv", drawn, available_cores())
        write_committed(built, drawn, self.paths.paper, self.paths.reference, out)
        checkout = self._checkout(built)
        for name in NOTEBOOKS:
            (out / name).write_text(with_outputs(self.paths.notebooks / name, checkout), encoding="utf-8")
        return out

    def _checkout(self, built: Path) -> Path:
        """A folder like the checkout, where notebooks find the references, and what was built of them, alone."""
        paths, root = self.paths, self.scratch / "checkout"
        places = {"data/reference": paths.reference, "data/published": paths.published, "config": paths.claims.parent}
        places |= {f"paper/{path.name}": path for path in paths.paper.iterdir()}
        for name, path in {**places, "paper/build": built}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(path.resolve())
        return root

    @cached_property
    def frame(self) -> Frame:
        """The numbers as they were written."""
        return Frame.read(self.built / "numbers.csv")

    @cached_property
    def results(self) -> Path | None:
        """This machine's own run, whole or core, if the report shows one."""
        machine = self.frame.fact(HERE, "id") if self.is_built else ""
        if not machine:
            return None
        core = any(CORE in Path(number.file).parts for number in self.frame if number.role == HERE)
        return self.paths.results / (CORE if core else "") / machine

    @cached_property
    def runs(self) -> list[Run]:
        """The runs that the report is made of."""
        return vetted(load_runs(self.results, self.paths.reference))

    @cached_property
    def tables(self) -> list[Path]:
        """The CSV of every run."""
        return sorted(Path(run.source) for run in self.runs)

    @cached_property
    def derived(self) -> Frame:
        """The numbers, derived anew."""
        return Frame(numbers_of(self.runs, self.paths.published))

    @cached_property
    def judgements(self) -> list[Judgement]:
        """The verdicts, decided anew."""
        return judge_all(self.derived, self.paths.claims)


def build(paths: Paths, results: Path | None, folder: Path) -> Path:
    """Write numbers, claims and tables into a folder, as the workflow does."""
    numbers = build_numbers(results, paths.reference, paths.published, folder / "numbers.csv")
    claims = build_claims(numbers, paths.claims, folder / "claims.csv")
    build_tables(numbers, claims, folder / "tables")
    return folder
