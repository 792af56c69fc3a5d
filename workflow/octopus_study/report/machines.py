"""Facts about machines and runs as texts: what a set-up table and a caption name."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from octopus_study.measure.dependence import LAYERS, process_count
from octopus_study.names import DATASETS, GENERATED, PEER_PACKAGES, human, machine_name, stand_in
from octopus_study.report.frame import HERE, Key, Number, make_text
from octopus_study.report.quiet import loaded, loads
from octopus_study.report.rows import AND
from octopus_study.report.runs import Run
from octopus_study.report.selector import PROVENANCE
from octopus_study.timings import seconds_of

# Fact -> where provenance keeps it (keys joined by dots).
FACTS = {
    "gpu": "machine.gpu.name",
    "driver": "machine.gpu.driver",
    "cuda": "machine.gpu.cuda",
    "power_limit": "machine.gpu.power_limit_w",
    "cpu": "machine.cpu.model",
    "cores": "machine.cpu.cores",
    "threads": "machine.cpu.threads",
    "os": "machine.os",
    "python": "machine.python",
    "numpy": "machine.packages.numpy",
    "numba": "machine.packages.numba",
    "numba_cuda": "machine.packages.numba-cuda",
}


_MEMORY = re.compile(r" \d+GB HBM\w*$")  # behind a GPU's name; the table of machines has it
# A kernel's build name says nothing to a reader; major and minor version do.
_KERNEL = re.compile(r"(Linux \d+\.\d+)\S*")


def fact(provenance: dict[str, Any], path: str) -> str:
    """Return what provenance has under a dotted path, empty where it has nothing."""
    value: Any = provenance
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None else _KERNEL.sub(r"\1", str(value))


def machine_facts(runs: list[Run]) -> Iterator[Number]:
    """Yield ``<machine>.machine.<fact>`` once per machine, and ``<machine>.<study>.<fact>`` for every run."""
    usual = {}
    for machine in dict.fromkeys(run.scope for run in runs):
        own = [run for run in runs if run.scope == machine]
        usual[machine] = _usual(own)
        facts = usual[machine] | {
            "kind": kind(own[0]),
            "name": device_name(own[0]),
            "id": own[0].machine,
            "baselines": _baselines(own),
            "days": _days(own),
            "commits": _commits(own),
            "instances": _instances([each for run in own for each in (run, run.second) if each]),
        }
        for name, text in facts.items():
            if text:
                found = (run for run in own if name in FACTS and fact(run.provenance, FACTS[name]) == text)
                yield _text(next(found, own[0]), Key(machine, "machine", quantity=name), text)
    for run in runs:
        busy = loads(run.provenance) if loaded(run.provenance) else ()  # before and after, beside other work
        facts = {
            "measured_on": run.measured_on or "unknown date",
            "started": str(run.provenance.get("started", "")),
            "minutes": str(max(1, round(seconds_of(run.provenance) / 60))),
            "commit": run.commit[:10],
            "other_load": " and ".join(f"{load:.2f}" for load in busy),
            "unlike": _unlike(run, usual[run.scope]),
            "processes": processes(run),
            "dataset": dataset_names(run),
            "synthetic": "yes" if any(map(stand_in, run.datasets)) else "no",
        }
        yield from (_text(run, run.fact_key(name), text) for name, text in facts.items() if text)


def _usual(runs: list[Run]) -> dict[str, str]:
    """Return the facts of a machine, each as most of its runs found it."""
    found = {name: [fact(run.provenance, path) for run in runs] for name, path in FACTS.items()}
    known = {name: Counter(filter(None, texts)).most_common(1) for name, texts in found.items()}
    return {name: texts[0][0] if texts else "" for name, texts in known.items()}


def _unlike(run: Run, usual: dict[str, str]) -> str:
    """Return the facts that a run found otherwise than most runs of its machine; empty where there are none."""
    texts = {name: fact(run.provenance, path) for name, path in FACTS.items()}
    apart = [f"{name.replace('_', ' ')} {text}" for name, text in texts.items() if text not in ("", usual[name])]
    return ", ".join(apart)


def _days(runs: list[Run]) -> str:
    """Return the day on which all runs of a machine were measured, or the first and the last one."""
    days = sorted({run.measured_on for run in runs if run.measured_on})
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "an unknown date"


def _commits(runs: list[Run]) -> str:
    """Return by which commits' code a machine was measured, and how many studies each measured, the most first."""
    counts = Counter(run.commit[:10] for run in runs if run.commit).most_common()
    if len(counts) < 2:
        return f"commit {counts[0][0]}" if counts else "an unknown commit"
    return "commits " + ", ".join(
        f"{commit} ({count} {'study' if count == 1 else 'studies'})" for commit, count in counts
    )


def _instances(runs: list[Run]) -> str:
    """Return how many cards and how many boots a machine's runs saw: runs of one kind of machine needn't be of one."""
    names = {"card": "machine.identity.gpu", "boot": "machine.identity.boot"}
    found = {name: [fact(run.provenance, path) for run in runs] for name, path in names.items()}
    counts = {name: len(set(filter(None, seen))) for name, seen in found.items()}
    parts = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items() if count]
    silent = found["boot"].count("")
    parts += [f"{silent} {'study tells' if silent == 1 else 'studies tell'} none"] if parts and silent else []
    return ", ".join(parts)


def processes(run: Run) -> str:
    """Return how many processes measured a run's comparisons on the host; empty where nothing was measured there."""
    timed = run.rows[run.rows["layer"].isin(LAYERS) & (run.rows["unit"] == "ms") & run.rows["value"].notna()]
    return str(process_count(timed.set_index("block")["value"])) if len(timed) else ""


def _baselines(runs: list[Run]) -> str:
    """Return the baselines that any run of a machine found installed, with their versions."""
    packages: dict[str, Any] = {}
    for run in runs:
        found = run.provenance.get("machine", {}).get("packages", {})
        packages |= {name: version for name, version in found.items() if version}
    versions = {label: packages[name] for name, label in PEER_PACKAGES.items() if name in packages}
    return ", ".join(f"{label} {version}" for label, version in versions.items())


def kind(run: Run) -> str:
    """Say whether a run measured on a GPU or a CPU."""
    return "gpu" if fact(run.provenance, "machine.device") == "cuda" else "cpu"


def device_name(run: Run) -> str:
    """Return the human name of what a run measured on."""
    name = fact(run.provenance, FACTS[kind(run)])
    return _MEMORY.sub("", machine_name(name)) if name else human({}, run.machine)


def shown_runs(runs: list[Run]) -> Iterator[Number]:
    """Yield ``shown.<study>``: the machines, data sets and days of all runs of a study, for captions; and
    ``shown.<study>.device``: those on GPUs."""
    for study in dict.fromkeys(run.study for run in runs):
        chosen = [run for run in runs if run.study == study]
        yield shown(chosen, "", run_list(chosen, chosen))
        if on_gpus := [run for run in chosen if kind(run) == "gpu"]:
            yield shown(on_gpus, "device", run_list(on_gpus, chosen))


def run_list(runs: list[Run], among: list[Run]) -> str:
    """Name runs, which are shown `among` others: machines, data sets and days."""
    named = ((place_name(run, among), dataset_names(run), run.measured_on or "unknown date") for run in runs)
    return "; ".join(map(", ".join, named))


def place_name(run: Run, among: list[Run]) -> str:
    """Return the name of what a run measured on; where this machine's is `among` the runs, say which is which."""
    if run.scope == HERE:
        return f"{device_name(run)} (this machine)"
    return f"{device_name(run)}{' (reference)' if any(one.scope == HERE for one in among) else ''}"


def shown(runs: list[Run], name: str, text: str, selector: str = PROVENANCE) -> Number:
    """Return ``shown.<study>.<name>``: a sentence about all runs of a study."""
    source = runs[0].from_rows("", selector)
    files, commits = (
        AND.join(dict.fromkeys(texts)) for texts in zip(*((run.source, run.commit) for run in runs), strict=True)
    )
    source = source._replace(file=files, commit=commits)
    return make_text(Key("shown", runs[0].study, quantity=name), source, text)


def aliases(runs: list[Run]) -> Iterator[Number]:
    """Yield ``alias.gpu`` and ``alias.cpu``: the reference of each kind with the most studies, among equals the
    first by name."""
    for name in ("gpu", "cpu"):
        alike = {run.scope: run for run in runs if run.role == "reference" and kind(run) == name}
        counts = Counter(run.scope for run in runs if run.scope in alike)
        if scope := min(counts, key=lambda one: (-counts[one], one), default=""):
            yield _text(alike[scope], Key("alias", name), scope)


def of_text(runs: list[Run]) -> list[Run]:
    """Return the runs of this machine and of the references that the text, tables and figures show."""
    names = {HERE, *(number.text for number in aliases(runs))}
    return [run for run in runs if run.scope in names]


def dataset_names(run: Run) -> str:
    """Name the data sets of objects; the four generators and rows without data are not worth a caption."""
    if run.study in GENERATED:
        return GENERATED[run.study]
    drawn = [name for name in run.datasets if name not in ("n/a", "none", "synthetic")]
    return " and ".join(human(DATASETS, name) for name in drawn or run.datasets)


def _text(run: Run, key: Key, text: str) -> Number:
    return make_text(key, run.from_rows("", PROVENANCE), text)
