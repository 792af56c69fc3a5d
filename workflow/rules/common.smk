# What the rules share: the checked configuration, the paths made from it, and the digests that make jobs stale.

import json
import logging
import os
import re
import sys
from functools import cache
from hashlib import md5
from importlib import import_module
from pathlib import Path

from snakemake_interface_common.exceptions import WorkflowError

from octopus.backends import resolve
from octopus_study import timings
from octopus_study.config import MIRROR_VARIABLE, check_config
from octopus_study.data.manifest import why_stale
from octopus_study.data.registry import load_registry
from octopus_study.measure.machine import machine_id
from octopus_study.measure.digest import data_code, report_code, study_code
from octopus_study.names import STUDIES
from octopus_study.report import outputs
from octopus_study.report.committed import NOTEBOOKS, stored

CONFIG = check_config(config, source="the configuration (config/config.yaml, --configfile and --config)")
MACHINE = machine_id(CONFIG.device) if CONFIG.machine == "auto" else CONFIG.machine
RAW = CONFIG.raw_dir
RESULTS = f"{CONFIG.results_dir}/{MACHINE}"
# A machine that is named may be another one than this, which only submits: its device need not be here.
DEVICE = resolve(CONFIG.device) if "auto" in (CONFIG.machine, CONFIG.device) else CONFIG.device
TIMINGS = timings.read()
# `snakemake arena` means that study alone; Snakemake knows its targets only after it has read the rules.
NAMED = [study for study in STUDIES if study in sys.argv]
CHOSEN = NAMED or (STUDIES if CONFIG.studies == "all" else CONFIG.studies)

COMMITTED_FILES = [
    *sorted(map(str, Path("data/published").glob("*.csv"))),
    *sorted(map(str, Path(CONFIG.reference_dir).glob("*/*.[cj]s*"))),
    *sorted(map(str, Path(CONFIG.reference_dir).glob("*.csv"))),  # earlier runs
]
REPORT_CODE = report_code()
PAPER_FILES = sorted(
    str(file) for file in Path("paper").rglob("*.*") if "build" not in file.parts and file.suffix != ".pdf"
)

# What `verify` compares; as input it would be made anew first.
VISITORS = {
    str(file): md5(file.read_bytes()).hexdigest()
    for file in stored(Path("figures"), Path("paper"), Path("notebooks")).values()
    if file.is_file()
}

# More than any machine has: Snakemake scales a job down to what --cores allows.
ALL_CORES = 4096

# Jobs call the `octopus` of the Python that runs Snakemake, also where its environment isn't activated.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
# What a fetch reads there is no reason to fetch again, as a parameter of its rule would be.
os.environ.update({MIRROR_VARIABLE: CONFIG.mirror or "", "OCTOPUS_DATA": CONFIG.data})


wildcard_constraints:
    study="|".join(STUDIES),


def about(study):
    """The package of a study, which says its title and which data it needs."""
    return import_module(f"octopus_study.studies.{study}")


def manifest(wildcards):
    """Manifest of a study's data set."""
    return f"{RAW}/{about(wildcards.study).DATASET}.json"


def chosen_manifests():
    """Manifests of the data that the chosen studies need: what was deleted is fetched again, though nothing is measured."""
    return sorted({f"{RAW}/{about(study).DATASET}.json" for study in CHOSEN})


def study_settings(wildcards):
    """The settings that a study reads, as options."""
    keys = ["device", "seed", "threads", "measure", "crop", wildcards.study]
    values = CONFIG.model_dump(mode="json", include=set(keys))
    return [f"--set={key}={json.dumps(values[key])}" for key in keys]


def seconds(step):
    """How long a step is expected to take; None where that isn't known."""
    return timings.expected(step, DEVICE, CONFIG.effort, Path(CONFIG.reference_dir), TIMINGS)


def minutes(wildcards):
    """Time limit of a study on a cluster: half an hour, and thrice what it is expected to take (10 minutes if not known)."""
    return 30 + round(3 * (seconds(wildcards.study) or 600) / 60)


def takes(wildcards, output):
    """How long a study is expected to take; made from the output, as its title."""
    known = timings.rounded(seconds(Path(output.rows).stem))
    return f", {known}" if known else ""


class Left:
    """What this run still has to do after the study that begins, and the time of all; as a message shows it."""

    def __str__(self):
        jobs = list(workflow.dag.needrun_jobs()) if workflow.dag else []
        ahead = [job.wildcards.study for job in jobs if job.rule.name == "study"]
        shown = [timings.REPORT] if any(job.rule.name == "numbers" for job in jobs) else []
        known = [seconds(study) for study in ahead]
        time = timings.remaining([*known, *map(seconds, shown)]) if any(known) else ""
        studies = f"{len(ahead)} of {len(CHOSEN)} studies" if len(ahead) > 1 else "the last study"
        return f"{studies}{' and the report' if shown else ''} left{f', {time}' if time else ''}"


LEFT = Left()


@cache
def code(study):
    """Digest of the code of a study; kept, since Snakemake asks for it more than once per job."""
    return study_code(study, getattr(about(study), "CODE", ()))


def study_title(wildcards, output):
    """Title of a study; made from the output, since Snakemake then takes no new title for a change of the result."""
    return about(Path(output.rows).stem).__doc__.partition(": ")[2].rstrip(".")


def source(*more):
    """Params of a fetch: where the data go, whether they are the sample, and the digest of the code that gets them.

    A mirror and what is done without one aren't among them: the same data from elsewhere needn't be measured again.
    """
    sample = CONFIG.data == "sample"
    return {"options": [f"--raw={RAW}", *more], "sample": sample, "code": data_code()}


def drop_stale_manifests():
    """Delete manifests of data that are gone, or of a sample that real data shall replace: then they are fetched."""
    for name in load_registry():
        path = Path(RAW, f"{name}.json")
        if why := why_stale(path, CONFIG.data, CONFIG.mirror):
            print(f"{path}: {why}; it is fetched again", file=sys.stderr)
            path.unlink()


class Chatter(logging.Filter):
    """Keeps what Snakemake says before each job, whatever the job is, from the terminal."""

    def filter(self, record):
        return not re.match(r"Select jobs to execute|Execute \d+ jobs", str(record.msg))


for handler in logging.getLogger("snakemake.logging").handlers:
    handler.addFilter(Chatter())


onsuccess:
    if not workflow.remote_exec and all(map(Path.is_file, map(Path, rules.shown.input))):
        shell("octopus report summary")


onstart:
    if workflow.non_local_exec and "auto" in (CONFIG.machine, CONFIG.device):
        raise WorkflowError(
            "This node only submits; name what measures: --config device=cuda machine=NAME"
        )


# What a failed job leaves is that of an earlier run, which Snakemake takes for the job's own (its issue 3808): the next
# run would measure nothing.
onerror:
    for job in workflow.scheduler.failed:
        workflow.persistence.started(job)


if workflow.is_main_process:
    drop_stale_manifests()
