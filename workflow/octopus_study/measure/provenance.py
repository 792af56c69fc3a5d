"""Where a result comes from: the JSON beside each CSV binds its rows to code, settings, data and machine."""

import hashlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import octopus
from octopus.errors import InputError
from octopus_study.errors import MeasureError
from octopus_study.measure._files import atomic_text, repository_root
from octopus_study.measure.digest import config_digest, science, source_digest
from octopus_study.measure.machine import machine_state, package_versions
from octopus_study.measure.schema import first_violation

FORMAT = 2  # of a record; the schema takes no other
RULES = "config/claims.yaml"
_DATASET_FIELDS = ("dataset", "synthetic", "sha256", "source", "reason", "fetched_at", "licence", "citation")
# An absolute path begins a word, or follows what separates words within an argument.
_ABSOLUTE = re.compile(r"(?<![^\s=\"',:;\[({])(?:~|[A-Za-z]:)?[/\\][^\s\"',;\])}]*")


def provenance(
    study: str,
    config: Any,
    manifest: Any,
    started: datetime,
    ended: datetime,
    machine: Mapping[str, Any],
    rules: Mapping[str, Any],
    packages: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Gather everything that a result carries, as plain JSON values.

    Of the settings, those that only say where files lie are left out, of the digest too; so is the path of the data,
    which belongs to this machine. `machine` and `rules` are what :func:`octopus_study.measure.machine_facts` and
    :func:`claims_rules` said when the study began, `packages` further ones whose versions matter, `extra` what only
    this study knows. `started` and `ended` have a time zone.
    """
    if started.tzinfo is None or ended.tzinfo is None or ended < started:
        raise InputError(f"A study starts before it ends, both with a time zone; found {started} and {ended}.")
    data = asdict(manifest)
    return {
        "format": FORMAT,
        "study": study,
        "command": command_line(),
        "started": _utc(started),
        "ended": _utc(ended),
        "git": git_state(),
        "octopus": {"version": octopus.__version__, "sha256": source_digest()},
        "config": {"sha256": config_digest(config), "values": science(config)},
        "rules": dict(rules),
        "datasets": [{name: data[name] for name in _DATASET_FIELDS}],
        "machine": {**machine, "packages": machine["packages"] | package_versions(tuple(packages))},
        "state_after": machine_state(machine["device"]),
        "extra": dict(extra or {}),
    }


def claims_rules() -> dict[str, str | None]:
    """Return the file of the claims and its digest, None where there is none: a run tells by which rules it was
    measured."""
    path = repository_root() / RULES
    return {"file": RULES, "sha256": hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None}


def command_line(arguments: Sequence[str] | None = None, root: Path | None = None) -> str:
    """Return the command of this process as a shell would read it, without the folders of this machine: of the program
    only the name is kept, paths below `root` become relative to it, and of other absolute paths the last part is
    kept."""
    program, *others = sys.argv if arguments is None else arguments
    folder = (root or repository_root()).resolve()
    kept = [_ABSOLUTE.sub(lambda path: _local(path[0], folder), argument) for argument in others]
    return shlex.join([Path(program).name, *kept])


def write_provenance(path: str | Path, record: Mapping[str, Any]) -> Path:
    """Validate a provenance record and write it as JSON, ``<study>.json``, whole or not at all. The digest of the CSV
    beside it goes into the record, so that rows which were changed afterwards are found out."""
    path = Path(path)
    table = path.with_suffix(".csv")
    full = {**record, "results": _fingerprint(table) if table.is_file() else None}
    _require_valid(full, str(path))
    with atomic_text(path) as stream:
        json.dump(full, stream, indent=2, ensure_ascii=False, allow_nan=False)
        stream.write("\n")
    return path


def validate_provenance(path: str | Path) -> dict[str, Any]:
    """Check a provenance file against its schema, and its CSV against the digest; return the record, or raise
    `MeasureError`."""
    path = Path(path)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MeasureError(f"There is no provenance {path}, so nothing says where its rows come from.") from error
    except (OSError, ValueError) as error:
        raise MeasureError(f"Can't read the provenance {path}: {error}.") from error
    _require_valid(record, str(path))
    expected = record["results"]
    if expected is not None:
        table = path.with_name(expected["file"])
        if not table.is_file():
            raise MeasureError(f"{path} belongs to {table.name}, which is not beside it.")
        if _fingerprint(table) != expected:
            raise MeasureError(f"{table} was changed after it was measured: its digest is not the one in {path.name}.")
    return record


def git_state(root: str | Path | None = None) -> dict[str, Any]:
    """Return the commit and whether files differ from it; None and the reason where git can't say. New files count as a
    difference unless git ignores them."""
    folder = Path(root) if root is not None else repository_root()
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        dirty = bool(_git(folder, "status", "--porcelain"))
    except FileNotFoundError:
        return {"commit": None, "dirty": None, "reason": "git is not installed"}
    except subprocess.CalledProcessError as error:
        return {"commit": None, "dirty": None, "reason": " ".join(error.stderr.split())[:200] or "git failed"}
    return {"commit": commit, "dirty": dirty, "reason": None}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _local(text: str, folder: Path) -> str:
    path = Path(text)
    if path.is_relative_to(folder):
        return path.relative_to(folder).as_posix()
    return ".../" + re.split(r"[/\\]", text.rstrip("/\\"))[-1]


def _fingerprint(table: Path) -> dict[str, Any]:
    content = table.read_bytes()
    return {"file": table.name, "sha256": hashlib.sha256(content).hexdigest(), "rows": max(content.count(b"\n") - 1, 0)}


def _require_valid(record: Mapping[str, Any], where: str) -> None:
    try:
        plain = json.loads(json.dumps(record, allow_nan=False))
    except ValueError as error:
        raise MeasureError(f"{where} breaks the provenance schema: {error}.") from error
    violation = first_violation("provenance", plain)
    if violation:
        raise MeasureError(f"{where} breaks the provenance schema: {violation}.")
