# What the rules share: the checked configuration, the paths made from it, and the digests that make jobs stale.

import json
import os
import sys
from pathlib import Path

from octopus.config import check_config
from octopus.measure.digest import source_digest
from octopus.measure.machine import machine_id
from octopus.report import figures, tables
from octopus.studies import STUDIES

# Everything in the package that a measurement may run, so that a new module is never forgotten.
ABOVE_STUDIES = {
    "cli",
    "doctor.py",
    "config.py",
    "config_sections.py",
    "report",
    "studies",
    "power",
    "__init__.py",
    "__pycache__",
}
FLOORS = {
    "data": ["errors.py", "data"],
    "study": sorted({path.name for path in Path("octopus").iterdir()} - ABOVE_STUDIES),
    "report": ["errors.py", "measure", "power", "report"],
}

CONFIG = check_config(config, source="the configuration (config/config.yaml, --configfile and --config)")
MACHINE = machine_id(CONFIG.device) if CONFIG.machine == "auto" else CONFIG.machine
RAW = CONFIG.raw_dir
RESULTS = f"{CONFIG.results_dir}/{MACHINE}"

COMMITTED_FILES = [
    *sorted(map(str, Path("data/published").glob("*.csv"))),
    *sorted(map(str, Path(CONFIG.reference_dir).glob("*/*.[cj]s*"))),
]
PAPER_FILES = sorted(str(file) for file in Path("paper").rglob("*.*") if "build" not in file.parts)

# More than any machine has: Snakemake scales a job down to what --cores allows.
ALL_CORES = 4096

# Jobs call the `octopus` of the Python that runs Snakemake, also where its environment isn't activated.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


wildcard_constraints:
    figure="|".join(figures.NAMES),


def code(floor, *more):
    """Digest of the code that a rule runs; comments and dates don't change it."""
    return source_digest([f"octopus/{path}" for path in (*FLOORS[floor], *more)])


def study(name):
    """Params of a study: the settings that it reads, and the digest of the code that it runs."""
    keys = ["device", "seed", "threads", "measure", "crop", name]
    values = CONFIG.model_dump(mode="json", include=set(keys))
    settings = [f"--set={key}={json.dumps(values[key])}" for key in keys]
    others = tuple(f"{other}{end}" for other in STUDIES if other != name for end in (".py", "_"))
    files = [file.name for file in Path("octopus/studies").glob("*.py") if not file.name.startswith(others)]
    own = ["power"] if name == "power" else []  # no other study reads a sensor
    return {"settings": settings, "code": code("study", *own, *(f"studies/{file}" for file in files))}


def source(*more):
    """Params of a fetch: where data may come from, and the digest of the code that gets them."""
    options = [f"--mode={CONFIG.data}", f"--raw={RAW}", *more]
    if CONFIG.mirror and CONFIG.data != "sample":
        options.append(f"--mirror={CONFIG.mirror}")
    return {"options": options, "code": code("data")}
