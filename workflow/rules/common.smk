# What the rules share: the checked configuration, the paths made from it, and the digests that make jobs stale.

import json
import os
import sys
from pathlib import Path

from octopus_study.config import check_config
from octopus_study.measure.digest import source_digest
from octopus_study.measure.machine import machine_id
from octopus_study.report import charts, tables
from octopus_study.studies import STUDIES

# What a rule's code is, so that a change of it makes the rule's results stale, and no other change does.
LIBRARY = "octopus"
ARTIFACT = "workflow/octopus_study"
CODE = {
    "data": ["errors.py", "data"],
    "study": ["errors.py", "methods.py", "sections.py", "data", "kernels", "measure", "peers"],
    "report": ["errors.py", "methods.py", "measure", "power", "report"],
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
    figure="|".join(charts.names()),


def code(part, *more, library=False):
    """Digest of the code that a rule runs; comments and dates don't change it."""
    own = [f"{ARTIFACT}/{path}" for path in (*CODE[part], *more)]
    return source_digest([*own, LIBRARY] if library else own)


def study(name):
    """Params of a study: the settings that it reads, and the digest of the code that it runs."""
    keys = ["device", "seed", "threads", "measure", "crop", name]
    values = CONFIG.model_dump(mode="json", include=set(keys))
    settings = [f"--set={key}={json.dumps(values[key])}" for key in keys]
    shared = [f"studies/{file.name}" for file in Path(ARTIFACT, "studies").glob("*.py")]
    own = ["power"] if name == "power" else []  # no other study reads a sensor
    return {"settings": settings, "code": code("study", *own, *shared, f"studies/{name}", library=True)}


def source(*more):
    """Params of a fetch: where data may come from, and the digest of the code that gets them."""
    options = [f"--mode={CONFIG.data}", f"--raw={RAW}", *more]
    if CONFIG.mirror and CONFIG.data != "sample":
        options.append(f"--mirror={CONFIG.mirror}")
    return {"options": options, "code": code("data")}
