"""Each name once: methods and libraries, workloads, quantities and studies as readers see them.

Rows carry identifiers; tables, figures, claims and pages take their words from here. The names themselves are in
``names.toml``. Nothing is imported here, so that every layer can read it.
"""

import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

# Octopus, the method that all are compared with, itself entered twice, and the bounds beside it.
SUBJECT, AGAIN = "octopus", "-again"
BOUND, ROOF = "write-bound", "roof"
# The source documents' own comparison: their one launch against their N launches.
PUBLISHED_PAIR = ("published", "n-launches")

# Okabe and Ito, "Color Universal Design" (2008): told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, LIGHT = "#6E6E6E", "#D9D9D9"


class Library(NamedTuple):
    """A library that Octopus is compared with, or that a study runs."""

    name: str  # what people call it; empty where no text names it
    packages: tuple[str, ...]  # its builds in the package index, whose versions go into the provenance
    extra: str = ""  # of the artifact, that installs the first of them; empty for a dependency
    install: str = ""  # how to get it where no extra may bring it


class MethodRow(NamedTuple):
    """A method's row."""

    name: str  # in the rows of results
    label: str  # its human name
    colour: str = ""  # of figures, like `marker`; empty for the default
    marker: str = ""
    short: str = ""  # its human name where a column is narrow; empty if `label` is short enough
    library: str = ""  # of `LIBRARIES`; empty for Octopus' own and for NumPy
    # ``module:class`` in `baselines` of what the arena runs; empty where a study makes the method itself
    target: str = ""
    listed: bool = False  # whether the arena's tables list it although it has no target
    like: str = "octopus"  # Octopus' method with the same answer, with which it is compared


_NAMES = tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
LIBRARIES = tuple(Library(**{**each, "packages": tuple(each["packages"])}) for each in _NAMES["libraries"])
# By what they work on: crops, items of a batch, edges, images into a model, embeddings, a block's way to its image,
# pipelines, shapes.
(
    CROP_METHODS, ITEM_METHODS, EDGE_METHODS, PROCESSOR_METHODS, EMBEDDING_METHODS, OWNER_METHODS, PREPARING_METHODS,
    IMAGE_METHODS,
) = (
    tuple(MethodRow(name, **row) for name, row in _NAMES[f"{group}_methods"].items())
    for group in ("crop", "item", "edge", "processor", "embedding", "owner", "preparing", "image")
)  # fmt: skip


def _tables(start: str, *names: str) -> Iterator[dict[str, str]]:
    return (_NAMES[f"{start}_{name}"] for name in names)


AS_PUBLISHED = "as-published"
DRUNET_MULTIPLE = 8  # of which a side must be a multiple for DRUNet to run whole

METHODS = {row.name: row.label for row in CROP_METHODS}
SHORT_METHODS = {row.name: row.short or row.label for row in CROP_METHODS}
# In the arena, names stand in lists, so they hold no comma; the order is that of its tables and figures.
ARENA_METHODS = {row.name: row.short or row.label for row in CROP_METHODS if row.target or row.listed} | {
    "n-launches-fused": "N launches (fused)",
    **{row.name: (row.short or row.label).replace(",", "") for row in CROP_METHODS if row.library == "OpenCV"},
}
# One method of each kind, whose memory the arena measures on a GPU: the others of a library differ little.
MEMORY_METHODS = (
    "octopus", "published", "tensorrt-padded", "padded-torch", "cvcuda", "dali", "roi-align", "grid-sample",
)  # fmt: skip
LADDER_STEPS, LADDER_CHANGES, LADDER_WORKLOADS = _tables("ladder", "steps", "changes", "workloads")
RESULT_KINDS: dict[str, str] = _NAMES["result_kinds"]
CODE_PATHS: dict[str, str] = _NAMES["code_paths"]
INPUTS: dict[str, str] = _NAMES["inputs"]
SAVING_STEPS: dict[str, str] = _NAMES["saving_steps"]
WORKLOADS: dict[str, str] = _NAMES["workloads"]
ARENA_WORKLOADS = WORKLOADS | {
    "uniform": "Uniform 256 \u00d7 256",
    "uniform-1thread": "Uniform 256 \u00d7 256, one thread",
    "visdrone-onescale": "VisDrone, one mean and deviation",
    "large": "Large",
    "large-1thread": "Large, one thread",
}
# Packages of the baselines, by their names in the index; several names of one library stand for its builds.
PEER_PACKAGES = {package: library.name for library in LIBRARIES if library.name for package in library.packages}
# How a thread finds its item, in the order of the ladder; the forms of the lookup table are those of the total cost.
STRATEGIES = {row.name: row.label for row in ITEM_METHODS}
PROCESSORS = {row.name: row.label for row in PROCESSOR_METHODS}
EMBEDDERS = {row.name: row.label for row in EMBEDDING_METHODS}
TILE_OWNERS = {row.name: row.label for row in OWNER_METHODS}
PIPELINE_METHODS = {row.name: row.label for row in PREPARING_METHODS}
SHAPE_WAYS = {row.name: row.label for row in IMAGE_METHODS}
PATCH_TEXT = "{batch} \u00d7 {side}\u00b2"
TILE_SPREADS, TILE_RULES, TILE_METHODS = _tables("tile", "spreads", "rules", "methods")
WORKING_SETS: dict[str, str] = _NAMES["working_sets"]
DISTRIBUTIONS: dict[str, str] = _NAMES["distributions"]
OPERATIONS: dict[str, str] = _NAMES["operations"]
IMAGE_MIXES, IMAGE_KERNELS, IMAGE_BATCHES, IMAGE_INPUTS = _tables("image", "mixes", "kernels", "batches", "inputs")
COST_PARTS: dict[str, str] = _NAMES["cost_parts"]
SEQUENCE_WORKLOADS: dict[str, str] = _NAMES["sequence_workloads"]
CONCURRENCY_MODELS, CONCURRENCY_ARMS, CONCURRENCY_PAIRS, CONCURRENCY_STAGES = _tables(
    "concurrency", "models", "arms", "pairs", "stages"
)
CROPS_BESIDE: dict[str, str] = _NAMES["crops_beside"]
PIPELINES: dict[str, str] = _NAMES["pipelines"]
DENOISERS: dict[str, str] = _NAMES["denoisers"]
LAYERS: dict[str, str] = _NAMES["layers"]
DATASETS: dict[str, str] = _NAMES["datasets"]
GENERATED: dict[str, str] = _NAMES["generated"]
POWER_SCOPES, POWER_SENSORS = _tables("power", "scopes", "sensors")
PUBLISHED_POWER: dict[str, str] = _NAMES["published_power"]
QUANTITIES: dict[str, str] = _NAMES["quantities"]
PUBLISHED_MACHINES: dict[str, str] = _NAMES["published_machines"]
SOURCES: dict[str, str] = _NAMES["sources"]
SCENES: dict[str, str] = _NAMES["scenes"]
VARIANTS: dict[str, str] = _NAMES["variants"]
FRAME_METHODS: dict[str, str] = _NAMES["frame_methods"]
READING_METHODS, READING_STEPS, READING_WORKLOADS = _tables("reading", "methods", "steps", "workloads")
WORKLOAD_PARTS: dict[str, str] = _NAMES["workload_parts"]
DERIVED_NAMES: dict[str, str] = _NAMES["derived_names"]
# What a study's own figures call a method, where that isn't what others call it.
METHODS_OF = {
    "arena": {name: f"Octopus ({kind})" if name.startswith("octopus") else kind for name, kind in RESULT_KINDS.items()}
    | METHODS
    | LADDER_STEPS
    | {"octopus": METHODS["octopus"]},
    "concurrency": CONCURRENCY_ARMS | CROPS_BESIDE | CONCURRENCY_STAGES,
    "drone": FRAME_METHODS,
    "image_shape": SHAPE_WAYS | TILE_SPREADS | WORKING_SETS | DENOISERS,
    "images": EMBEDDERS | PROCESSORS | TILE_OWNERS,
    "pipelines": PIPELINE_METHODS,
    "reading": STRATEGIES | READING_METHODS,
    "satellite": TILE_METHODS | TILE_RULES | {"octopus-cpu": PIPELINE_METHODS["octopus-cpu"]},
    **dict.fromkeys(("mapping", "sequences", "total_cost"), STRATEGIES),
}
# What workloads begin with, and what else stands in their names.
WORKLOADS_OF = {
    "arena": ARENA_WORKLOADS
    | {name: f"Ladder, {text}" for name, text in LADDER_WORKLOADS.items()}
    | CODE_PATHS
    | INPUTS,
    "concurrency": CONCURRENCY_PAIRS,
    "drone": {"clip": "Clip"},
    "image_shape": DENOISERS,
    "images": IMAGE_BATCHES,
    "mapping": DISTRIBUTIONS | OPERATIONS,
    "pipelines": PIPELINES | {"crops": "Detections", "loader": "JPEG"},
    "reading": READING_WORKLOADS,
    "satellite": SCENES | VARIANTS,
    "sequences": SEQUENCE_WORKLOADS,
    "total_cost": IMAGE_MIXES | IMAGE_KERNELS,
}
QUANTITY_NAMES = QUANTITIES | READING_STEPS | _NAMES["further_quantities"]


def in_order(studies: Iterable[str]) -> list[str]:
    """Sort names of studies as the paper goes; one that isn't named there comes last."""
    order = _NAMES["studies"]
    return sorted(studies, key=lambda name: (order.index(name) if name in order else len(order), name))


STUDIES = tuple(in_order(info.name for info in iter_modules([str(Path(__file__).with_name("studies"))]) if info.ispkg))


def arena_methods() -> dict[str, str]:
    """Names of all methods that the arena runs, and their targets, in the order of its tables."""
    return {row.name: row.target for row in CROP_METHODS if row.target}


def packages() -> tuple[str, ...]:
    """All builds of all libraries, for the provenance."""
    return tuple(package for library in LIBRARIES for package in library.packages)


class Facts(NamedTuple):
    """What the names of a row say, as columns; empty, and of threads 0, where they don't say it."""

    scope: str = ""  # what a power or energy is that of, such as ``gpu_board``
    threads: int = 0
    dtype: str = ""
    distribution: str = ""  # of sizes: ``large``, a mix of images, a scene
    operation: str = ""  # what is done with them: ``blur3x3``, ``light``, ``antialias``, ``step64``
    model: str = ""


_TYPES = {name: name for name in ("float32", "float16", "bfloat16", "uint8", "uint16", "rgb8")}
_TYPES |= {"fp16": "float16", "bf16": "bfloat16"}


@cache
def facts(study: str, workload: str, method: str = "", quantity: str = "") -> Facts:
    """Return what the names of a row say; nothing else takes a name apart. Names stay what they are in rows and ids;
    studies of two parts join them with a dash (`distribution-operation`)."""
    parts = workload.split("-")
    said = Facts(
        threads=1 if "1thread" in parts else 0,
        dtype=next((_TYPES[part] for part in (*parts, *method.split("-")) if part in _TYPES), ""),
    )
    if study in ("arena", "stage_timing"):
        return said._replace(distribution=parts[0], operation="antialias" if "antialias" in parts else "")
    if study == "mapping" and parts[0] in DISTRIBUTIONS:
        operation = "-".join(part for part in parts[1:] if part not in _TYPES)
        return said._replace(distribution=parts[0], operation=operation, dtype=said.dtype or "float32")
    if study == "total_cost":
        mix, _, kernel = workload.removesuffix("-ladder").rpartition("-")
        return said._replace(distribution=mix, operation=kernel)
    if study == "satellite":
        return said._replace(distribution=parts[0])
    if study == "image_shape":
        return said._replace(model=parts[0], operation="-".join(parts[1:]))
    if study == "concurrency":
        model = next((name for name in (*CONCURRENCY_STAGES, *CONCURRENCY_MODELS) if _ends_in(quantity, name)), "")
        return said._replace(model=model)
    return said._replace(distribution=workload)


def _ends_in(quantity: str, model: str) -> bool:
    return quantity.endswith("_" + model.replace("-", "_"))


def stand_in(dataset: str) -> bool:
    """Say whether a data set was generated in place of a real one, and not by design as plain `synthetic` is."""
    return "synthetic-" in dataset


def human(names: dict[str, str], identifier: str) -> str:
    """Return the human name of an identifier; one without a name yet reads as words."""
    return names.get(identifier) or identifier.replace("_", " ").replace("-", " ").capitalize()


def place(names: Iterable[str], identifier: str) -> tuple[int, str]:
    """Return what sorts identifiers in the order in which they are named; those without a name yet come last."""
    order = list(names)
    return (order.index(identifier) if identifier in order else len(order), identifier)


def machine_name(device: str) -> str:
    """Shorten a vendor's device name to what a legend can hold: no trademark signs, no clock speed."""
    name = device.replace("(R)", "").replace("(TM)", "").replace(" CPU", "").replace(" Processor", "")
    return " ".join(name.split("@")[0].split())
