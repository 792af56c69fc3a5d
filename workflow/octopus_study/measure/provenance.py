"""Where a result comes from: the JSON beside each CSV binds its rows to code, settings, data and machine."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import octopus
from octopus.errors import InputError
from octopus_study.errors import MeasureError
from octopus_study.measure._files import atomic_text, repository_root
from octopus_study.measure.clock_rates import ClockRates
from octopus_study.measure.digest import config_digest, science, source_digest
from octopus_study.measure.environment import claims_rules, command_line, environment
from octopus_study.measure.machine import machine_facts, machine_state, package_versions
from octopus_study.measure.schema import first_violation

FORMAT = 2  # records without a format are older, and lack what the schema demands since
_DATASET_FIELDS = ("dataset", "synthetic", "sha256", "source", "reason", "fetched_at", "licence", "citation")


def utc_now() -> datetime:
    """Return the present time with its zone, as `started` and `ended` want it."""
    return datetime.now(UTC)


def provenance(
    study: str,
    config: Any,
    dataset: Any,
    started: datetime,
    ended: datetime,
    *,
    machine: Mapping[str, Any] | None = None,
    device: str = "auto",
    packages: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    rules: Mapping[str, Any] | None = None,
    rates: ClockRates | None = None,
    replicate: int = 1,
) -> dict[str, Any]:
    """Gather everything that a result carries, as plain JSON values.

    Parameters
    ----------
    study : str
        Name of the study.
    config : mapping or pydantic model
        The settings. Those that only say where files lie are left out, of the digest too.
    dataset : manifest, or sequence of manifests
        Data classes or mappings with ``dataset``, ``synthetic`` and ``sha256``; other fields of a manifest
        are taken where they exist, its path is not.
    started, ended : datetime
        With a time zone; see :func:`utc_now`.
    machine : mapping, optional
        What :func:`octopus_study.measure.machine_facts` said when the study began. Without it the facts are read
        now, and the state at the start is the one at the end.
    device : {"auto", "cpu", "cuda"}
        What was measured, where `machine` doesn't say.
    packages : sequence of str
        Further packages whose versions matter, such as the baselines of the study.
    extra : mapping, optional
        What only this study knows (threads per method, sizes of buffers).
    rules : mapping, optional
        What :func:`octopus_study.measure.environment.claims_rules` said when the study began; read now without it.
    rates : ClockRates, optional
        The GPU's clocks during the run; None where no GPU was measured.
    replicate : int
        Which repetition of the study on this machine it is, from 1 on.

    Raises
    ------
    InputError
        The replicate is less than 1, a time has no zone or the end is before the start, or a manifest lacks something.
    """
    if started.tzinfo is None or ended.tzinfo is None or ended < started:
        raise InputError(f"A study starts before it ends, both with a time zone; found {started} and {ended}.")
    if replicate < 1:
        raise InputError(f"Replicates are counted from 1 on, found {replicate}.")
    facts = dict(machine) if machine is not None else machine_facts(device)
    facts["packages"] = {**facts["packages"], **package_versions(tuple(packages))}
    return {
        "format": FORMAT,
        "study": study,
        "replicate": replicate,
        "command": command_line(),
        "started": _utc(started),
        "ended": _utc(ended),
        "git": git_state(),
        "octopus": {"version": octopus.__version__, "sha256": source_digest()},
        "config": {"sha256": config_digest(config), "values": science(config)},
        "rules": dict(rules) if rules is not None else claims_rules(),
        "environment": environment(),
        "datasets": [_dataset(manifest) for manifest in _as_sequence(dataset)],
        "machine": facts,
        "state_after": machine_state(facts["device"]),
        "clocks": None if rates is None else rates.summary(),
        "extra": dict(extra or {}),
    }


def write_provenance(path: str | Path, record: Mapping[str, Any], results: str | Path | None = None) -> Path:
    """Validate a provenance record and write it as JSON, whole or not at all.

    Parameters
    ----------
    path : str or Path
        ``<study>.json``.
    record : mapping
        From :func:`provenance`.
    results : str or Path, optional
        The CSV that the record belongs to, by default the one beside `path` where there is one. Its digest
        goes into the record, so that rows which were changed afterwards are found out.

    Raises
    ------
    MeasureError
        The record breaks the schema, or `results` doesn't exist.
    """
    path = Path(path)
    table = Path(results) if results is not None else path.with_suffix(".csv")
    if results is not None and not table.is_file():
        raise MeasureError(f"No result file {table}: write the rows before their provenance.")
    full = {**record, "results": _fingerprint(table) if table.is_file() else None}
    _require_valid(full, str(path))
    with atomic_text(path) as stream:
        json.dump(full, stream, indent=2, ensure_ascii=False, allow_nan=False)
        stream.write("\n")
    return path


def validate_provenance(path: str | Path) -> dict[str, Any]:
    """Check a provenance file against its schema, and its CSV against the digest; return the record.

    Raises
    ------
    MeasureError
        The file is absent or no JSON, breaks the schema, or the CSV isn't the one that it was written for.
    """
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
    """Return the commit and whether files differ from it; None and the reason where git can't say.

    New files count as a difference unless git ignores them.
    """
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


def _as_sequence(dataset: Any) -> list[Any]:
    return list(dataset) if isinstance(dataset, list | tuple) else [dataset]


def _dataset(manifest: Any) -> dict[str, Any]:
    """Take from a manifest what belongs to the data; its path belongs to this machine."""
    fields = asdict(manifest) if is_dataclass(manifest) else manifest
    if not isinstance(fields, Mapping):
        raise InputError(f"Expected a manifest as data class or mapping, found {type(manifest).__name__}.")
    missing = [name for name in ("dataset", "synthetic", "sha256") if name not in fields]
    if missing:
        raise InputError(f"A manifest needs dataset, synthetic and sha256; {missing} are missing in {dict(fields)}.")
    return {name: fields[name] for name in _DATASET_FIELDS if name in fields}


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
