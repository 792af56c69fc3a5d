"""Pages of the documentation that follow from the code and the references."""

import inspect
import json
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from octopus_study.config import Config
from octopus_study.names import STUDIES
from octopus_study.report.frame import Frame
from octopus_study.report.published import published_numbers
from octopus_study.report.studies import report_of
from octopus_study.report.tables.spec import Spec

Cells = Iterable[Iterable[object]]
LOCK = "requirements.lock"


def table(head: Iterable[str], rows: Cells) -> str:
    """Return a Markdown table."""
    lines = [list(head)]
    lines += [["---"] * len(lines[0]), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def studies_page(root: Path) -> str:
    """Return what each study compares, its settings, what it shows, and the claims that it decides."""
    claims = yaml.safe_load((root / "config/claims.yaml").read_text(encoding="utf-8"))["claims"]
    published = Frame(published_numbers(root / "data/published"))
    parts = [_study(name, [claim for claim in claims if claim["study"] == name], published) for name in STUDIES]
    head = (
        "# Studies\n\nFor readers who look for a study: what it compares, its settings, what it shows and the claims "
        "that it decides. `snakemake --cores 1 <name>` runs one. This page is made from the code.\n\n"
    )
    mapped = (root / "docs/studies.md").read_text(encoding="utf-8").partition("\n## ")
    return "\n".join((head, *parts, "".join(mapped[1:])))


def _study(name: str, claims: list[dict[str, Any]], published: Frame) -> str:
    package, report = import_module(f"octopus_study.studies.{name}"), report_of(name)
    title = str(package.__doc__).partition(": ")[2].strip()
    data = f"`{package.DATASET}`"
    shown = [("figure", key, chart.caption) for key, chart in report.figures.items()]
    shown += [("table", key, _caption(spec, published)) for key, spec in report.tables.items()]
    parts = [f"## {name}\n\n{title[0].upper()}{title[1:]} Data: {data}.\n", _settings(name)]
    if shown:
        parts.append(table(("it shows", "name", ""), ((kind, f"`{key}`", text) for kind, key, text in shown)))
    if claims:
        rows = ((claim["claim"], claim["source"], claim["kind"]) for claim in claims)
        parts.append(_folded(f"Claims that it decides: {len(claims)}", table(("claim", "source", "kind"), rows)))
    return "\n".join(filter(None, parts))


def _caption(spec: object, published: Frame) -> str:
    """The first paragraph of a table's caption; one that is made of numbers is made of the published ones."""
    caption = spec.caption if isinstance(spec, Spec) else inspect.getdoc(spec) or ""
    text = caption if isinstance(caption, str) else caption(published)
    first = text.partition("\n\n")[0].replace("\n", " ").removeprefix("Return ").removeprefix("the caption: ")
    return first[:1].upper() + first[1:]


def _settings(name: str) -> str:
    section = Config.model_fields[name].annotation if name in Config.model_fields else None
    fields = getattr(section, "model_fields", {})
    rows = ((f"`{key}`", field.description or "") for key, field in fields.items())
    return _folded("Settings", table(("setting", ""), rows)) if fields else ""


def _folded(title: str, text: str) -> str:
    indented = "".join(f"    {line}\n" for line in text.splitlines())
    return f'??? note "{title}"\n\n{indented}'


def verified_page(root: Path) -> str:
    """Return when each reference was measured, at which commit and with which versions, beside those of the lock."""
    records = {
        folder.name: [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
        for folder in sorted((root / "data/reference").iterdir())
        if folder.is_dir()
    }
    days = sorted(record["ended"][:10] for runs in records.values() for record in runs)
    head = f"# Last verified\n\nThe last reference was measured on **{days[-1]}**.\n" if days else "# Last verified\n"
    runs = table(("machine", "device", "Python", "driver", "measured", "commits"), map(_machine, records.items()))
    lock = (root / LOCK).read_text(encoding="utf-8")
    versions = _versions(records, dict(re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE)))
    return (
        f"{head}\nFor readers who ask with which versions it was; from the provenance beside the rows.\n\n{runs}\n"
        f"## Versions\n\n`locked` is what `make` installs today.\n\n{versions}\n"
        "`.ci/canary` takes the newest versions that the ranges allow, and verifies again with them.\n"
    )


def _machine(item: tuple[str, list[dict[str, Any]]]) -> list[str]:
    name, runs = item
    machine = runs[-1]["machine"]
    days = sorted(run["ended"][:10] for run in runs)
    commits = sorted({f"`{run['git']['commit'][:10]}`" for run in runs})
    span = " to ".join(dict.fromkeys([days[0], days[-1]]))
    driver = (machine.get("gpu") or {}).get("driver", "") or ""
    return [name, machine["device"], machine["python"], str(driver), span, ", ".join(commits)]


def _versions(records: dict[str, list[dict[str, Any]]], locked: dict[str, str]) -> str:
    found = {
        name: {key: value for run in runs for key, value in run["machine"]["packages"].items() if value}
        for name, runs in records.items()
    }
    names = sorted({package for versions in found.values() for package in versions})
    rows = ([name, locked.get(name, ""), *(found[one].get(name, "") for one in found)] for name in names)
    return table(("package", "locked", *found), rows)
