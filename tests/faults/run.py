"""``make faults``: inject each fault of the catalogue into a copy of the checkout; the check or test that it names must
fail there. ``python tests/faults/run.py ID ...`` takes some.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from catalogue import BY_ID, FAULTS, VERIFY, Fault

from octopus_study.verify.scene import Paths, build

ROOT = Path(__file__).resolve().parents[2]
SECONDS, AT_ONCE = 900, 2
_COPIED = ("octopus", "workflow", "config", "paper", "data/published", "tests")
_IGNORED = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
_BUILD, _REFERENCE = Path("paper/build"), Path("data/reference")
_MAIN = "import sys; from octopus_study.cli.commands import app; app(sys.argv[1:])"
# Checks that compare with what was built before the fault. The others build a report with it: of one study, for speed.
_AFTER_BUILD = ("numbers", "tables", "verdicts", "text", "selectors", "published", "axes")
_OF_STUDY = {"medians": "total_cost", "ratios": "images", "energies": "power", "texts": "image_shape"}


class FaultResult(NamedTuple):
    """What became of a fault: its id, what must fail, whether it did, and what was said."""

    fault: str
    by: str
    noticed: bool
    said: str

    @property
    def line(self) -> str:
        return f"{'noticed' if self.noticed else 'MISSED':<8} {self.fault:<26} {self.by}: {self.said}"


def inject(fault: Fault, copy: Path) -> None:
    """Write a fault into a copy; a `LookupError` says that it no longer fits its file."""
    path = copy / fault.file
    text = fault.edit(path.read_text(encoding="utf-8"))
    path.unlink()  # it may be a link to the file that must stay as it is
    path.write_text(text, encoding="utf-8", newline="")
    if fault.renewed:
        record_path = path.with_suffix(".json")
        record = json.loads(record_path.read_text(encoding="utf-8"))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        record["results"] |= {"sha256": digest, "rows": text.count("\n") - 1}
        record_path.unlink()
        record_path.write_text(json.dumps(record), encoding="utf-8")


def copied(copy: Path, built: Path | None = None, study: str = "*") -> Path:
    """Copy the checkout, and a report if there is one; results are links, since they are large and few are changed."""
    for part in _COPIED:
        shutil.copytree(ROOT / part, copy / part, ignore=_IGNORED)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for path in (ROOT / _REFERENCE).glob(f"*/{study}.*"):
        link = copy / path.relative_to(ROOT)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    if built:
        shutil.copytree(built, copy / _BUILD)
    return copy


def fails(by: Iterable[str], copy: Path) -> tuple[bool, str]:
    """Say whether checks, or tests, fail in a copy, and what was said last; a `RuntimeError` says that they did not
    run."""
    wanted = list(by)
    checks = [name.removeprefix(VERIFY) for name in wanted if name.startswith(VERIFY)]
    arguments = [word for name in checks for word in ("--only", name)]
    command = (
        ["-c", _MAIN, "verify", *arguments]
        if checks
        else ["-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *wanted]
    )
    environment = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{copy / 'workflow'}", "MPLBACKEND": "agg"}
    options = {"cwd": copy, "env": environment, "capture_output": True, "text": True, "timeout": SECONDS}
    done = subprocess.run([sys.executable, *command], check=False, **options)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    if done.returncode not in (0, 1) or not lines:
        raise RuntimeError(f"{' '.join(wanted)} could not run\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1, next((line for line in lines if line.startswith("FAILED ")), lines[-1])


def place_of(by: str) -> tuple[bool, str]:
    """Return whether a check wants a report that was built before the fault, and of which study's rows alone."""
    check = by.removeprefix(VERIFY)
    return check in _AFTER_BUILD, _OF_STUDY.get(check, "*")


def results_of(fault: Fault, built: Path | None) -> Iterator[FaultResult]:
    """Yield what became of a fault, for each check or test that it names."""
    for by in fault.fails:
        after, study = place_of(by)
        with TemporaryDirectory(prefix="octopus-fault-") as folder:
            copy = copied(Path(folder), built if after else None, study)
            try:
                inject(fault, copy)
                yield FaultResult(fault.id, by, *fails([by], copy))
            except (LookupError, RuntimeError, subprocess.TimeoutExpired) as error:
                yield FaultResult(fault.id, by, False, str(error))


def run(faults: Sequence[Fault], built: Path | None = None) -> Iterator[FaultResult]:
    """Inject faults, two at once, and yield what became of each; `built` is a report without any."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for results in pool.map(lambda fault: list(results_of(fault, built)), faults):
            yield from results


def fail_without_faults(faults: Sequence[Fault], built: Path | None) -> Iterator[str]:
    """Yield what checks and tests say that fail in a copy without any fault: of them nothing can be said."""
    groups: dict[tuple[bool, str, bool], list[str]] = {}
    for by in dict.fromkeys(by for fault in faults for by in fault.fails):
        groups.setdefault((*place_of(by), by.startswith(VERIFY)), []).append(by)
    for (after, study, _), group in groups.items():
        with TemporaryDirectory(prefix="octopus-fault-") as folder:
            failed, said = fails(group, copied(Path(folder), built if after else None, study))
            if failed:
                yield said


def main(names: list[str]) -> int:
    """Try faults, all unless some are named; return 1 where one is missed, 2 where something fails without any."""
    faults = [BY_ID[name] for name in names] or list(FAULTS)
    with TemporaryDirectory(prefix="octopus-faults-") as folder, chdir(ROOT):  # a report names its files by paths
        after = any(place_of(by)[0] for fault in faults for by in fault.fails)
        built = build(Paths(), None, Path(folder)) if after else None
        if broken := list(fail_without_faults(faults, built)):
            print("\n".join(["something fails without any fault:", *broken]))
            return 2
        results = []
        for result in run(faults, built):
            print(result.line, flush=True)
            results.append(result)
    noticed = sum(result.noticed for result in results)
    print(f"{noticed} of {len(results)} noticed")
    return int(noticed < len(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
