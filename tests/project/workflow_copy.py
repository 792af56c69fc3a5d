"""A copy of the repository's workflow, and Snakemake run in it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from copies import CACHE

from octopus_study.names import STUDIES
from octopus_study.report import outputs
from octopus_study.report.claims import Judgement
from octopus_study.report.frame import Frame

COPIED = ("Snakefile", "config", "workflow", "profiles", "octopus", "paper", "data/published", "data/reference")
QUICK = ("--configfile", "config/quick.yaml", "--config", "data=sample", "device=cpu", "machine=here")


class Workflow:
    """A copy of the repository, and Snakemake run in it, by forks of one process that has imported it, which is most of
    what a short run takes; `fresh` runs are commands as users give them."""

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder, self.fresh, self.measuring = folder, fresh, ""

    def run(self, *arguments: str, mirror: str | Path = "") -> subprocess.CompletedProcess[str]:
        """Run `snakemake --cores 1` with the copy's package; `mirror` is what the environment names."""
        if not self.fresh:
            return self._forked(["--cores", "1", *arguments], self._environment(mirror))
        process = self.start(*arguments, mirror=mirror)
        return subprocess.CompletedProcess(process.args, stdout=process.communicate()[0], returncode=process.returncode)

    def start(self, *arguments: str, mirror: str | Path = "") -> subprocess.Popen[str]:
        both = {"stderr": subprocess.STDOUT, "start_new_session": True}
        return self._python("-m", "snakemake", "--cores", "1", *arguments, mirror=mirror, **both)

    def _python(self, *command: str | Path, mirror: str | Path = "", **pipes: Any) -> subprocess.Popen[str]:
        environment, out = self._environment(mirror), subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, *command], cwd=self.folder, env=environment, text=True, stdout=out, **pipes
        )

    def _environment(self, mirror: str | Path = "") -> dict[str, str]:
        packages = os.pathsep.join(map(str, (self.folder, self.folder / "workflow")))
        places = {"OCTOPUS_CACHE_DIR": str(self.folder / CACHE), "OCTOPUS_MIRROR": str(mirror)}
        return {**os.environ, "PYTHONPATH": packages, **places}

    def _forked(self, arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        server = self._runs
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps([arguments, environment]) + "\n")
        server.stdin.flush()
        code, printed = json.loads(server.stdout.readline())
        return subprocess.CompletedProcess(arguments, code, printed)

    @cached_property
    def _runs(self) -> subprocess.Popen[str]:
        return self._python(Path(__file__).with_name("forked_runs.py"), stdin=subprocess.PIPE)

    def end(self) -> None:
        if "_runs" in self.__dict__:
            self._runs.communicate()

    def planned(self, *more: str) -> set[str]:
        """Names of the rules that a dry run would run, and of the studies among them."""
        return self.jobs("-n", "--printshellcmds", *QUICK, *more)

    def jobs(self, *arguments: str, mirror: str | Path = "") -> set[str]:
        """The same of any run."""
        shown = ("--quiet", "reason", "--rerun-incomplete")  # with the table of jobs, which the profile leaves out
        done = self.run(*shown, *arguments, mirror=mirror)
        assert done.returncode == 0, done.stdout
        if "Nothing to be done" in done.stdout:
            return set()
        table = done.stdout.rpartition("Job stats:")[2]
        rules = set(re.findall(r"^([a-z_0-9]+) +\d+$", table, re.MULTILINE)) - {"total", "all"}
        return rules | set(re.findall(r"octopus measure (\w+)", done.stdout))

    def complete(self, *arguments: str, mirror: str | Path = "") -> str:
        done = self.run(*arguments, mirror=mirror)
        assert done.returncode == 0, done.stdout[-6000:]
        return done.stdout

    @contextmanager
    def appended(self, name: str, text: str) -> Iterator[None]:
        file = self.folder / name
        before = file.read_bytes()
        file.write_bytes(before + text.encode())
        yield
        file.write_bytes(before)

    def pretend(self, *arguments: str) -> None:
        """Make all that studies and report would write, empty, and let Snakemake take it for its own work."""
        names = [f"data/results/here/{name}.{kind}" for name in STUDIES for kind in ("csv", "json")]
        names += [f"figures/{name}.{kind}" for name in outputs.figures() for kind in ("pdf", "png")]
        names += [f"paper/build/tables/{name}.{kind}" for name in outputs.table_names() for kind in ("typ", "md")]
        names += [
            f"paper/build/{name}"
            for name in ("numbers.csv", "numbers.json", "claims.csv", "claims.json", "octopus.pdf", "supplement.pdf")
        ]
        names += ["figures/report.html"]
        for path in (self.folder / name for name in names):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (self.folder / "paper/build/series").mkdir()
        Frame([]).write(self.folder / "paper/build/numbers.csv")
        (self.folder / "paper/build/claims.csv").write_text(",".join(Judgement._fields) + "\n")
        self.complete("--touch", "--forceall", *arguments)
