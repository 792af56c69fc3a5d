"""The configuration of a run, typed.

The sections here and in the package of each study are the only definition of the keys. From them
`workflow/schemas/config.schema.yaml` is written (`octopus config --schema`); a test fails when the two differ.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import Field, ValidationError, create_model

from octopus.errors import InputError
from octopus_study.names import STUDIES
from octopus_study.sections import Count, Fraction, Seconds, Section, Triple

MIRROR_VARIABLE = "OCTOPUS_MIRROR"


class Measure(Section):
    """How long and how precisely each comparison is measured."""

    min_blocks: Count = Field(20, description="paired blocks that every comparison has at least")
    max_blocks: Count = Field(200, description="paired blocks after which a comparison ends")
    min_seconds: Seconds = Field(0.5, description="seconds of measured work that every comparison has at least")
    max_seconds: Seconds = Field(
        4.0, description="seconds after which a comparison with its least number of blocks ends"
    )
    give_up_seconds: Seconds = Field(120.0, description="seconds after which any comparison ends")
    stuck_seconds: Seconds = Field(
        600.0, description="seconds of one step of a method, after which it is ended and left out"
    )
    target_halfwidth: Fraction = Field(
        0.02, description="stop when every ratio's 95 % interval is within this fraction of the ratio"
    )
    processes: Count = Field(
        5, description="processes that share the blocks of each comparison on the host: intervals are over processes"
    )


class Crop(Section):
    """What every study makes of a box."""

    size: tuple[Count, Count] = Field((224, 224), description="height and width of each crop in pixels")
    mean: Triple = Field((123.675, 116.28, 103.53), description="subtracted per channel, on the scale 0-255")
    std: Triple = Field((58.395, 57.12, 57.375), description="divisor per channel, on the scale 0-255")


class Sentinel2(Section):
    """Which part of the Sentinel-2 band is read."""

    window: tuple[int, int, Count, Count] | Literal["auto", "full"] = Field(
        "auto",
        description="column, row, width and height in pixels; or full; auto: full where that can be had, else the "
        "window of 1000 x 1000 pixels at 9760, 6930",
    )


Folder = Annotated[str, Field(pattern="^[^{}]*$")]
"""A path that Snakemake takes as it is: in braces it would look for a wildcard."""


class Common(Section):
    """What a run can be told beside the settings of the studies."""

    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="where to measure")
    data: Literal["auto", "real", "sample"] = Field(
        "auto", description="real data where it is or can be had, else the embedded sample; or only the one"
    )
    mirror: str | None = Field(
        None, description=f"folder with copies of the data sets; null: what {MIRROR_VARIABLE} names"
    )
    machine: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9._-]*$")] = Field(
        "auto", description="name of this machine's folder of results; auto: made from the device's name"
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(42, description="of every random choice")
    threads: Literal["auto"] | Count = Field(
        "auto", description="of the CPU backend; auto: one per physical core that may be used"
    )
    raw_dir: Folder = Field("data/raw", description="downloads")
    results_dir: Folder = Field("data/results", description="what runs on this machine measure")
    effort: Literal["full", "core", "quick"] = Field("full", description="whose times are said beforehand")
    studies: Literal["all"] | tuple[Literal[STUDIES], ...] = Field(  # type: ignore[valid-type]
        "all", description="what is measured here; of the others the paper shows the references"
    )
    reference_dir: Folder = Field("data/reference", description="committed measurements that the paper shows")
    measure: Measure = Measure()  # type: ignore[call-arg]
    crop: Crop = Crop()  # type: ignore[call-arg]
    sentinel2: Sentinel2 = Sentinel2()  # type: ignore[call-arg]


def _section(study: str) -> type[Section]:
    """The section that the settings of a study define."""
    module = import_module(f"octopus_study.studies.{study}")
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    return next(value for value in own if isinstance(value, type) and issubclass(value, Section))


_SECTIONS = {study: _section(study) for study in STUDIES}
if TYPE_CHECKING:  # its sections are found at run time
    Config = Any
else:
    Config = create_model(
        "Config",
        __base__=Common,
        __doc__="Everything that a run of the Octopus artifact can be told.",
        **{study: (section, section()) for study, section in _SECTIONS.items()},
    )


def load_config(path: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read a YAML file, apply overrides by key (that of a section with a dot, `measure.max_seconds`), and check every
    key; what is left out has the defaults of `Config`. `InputError` says which key or value isn't allowed."""
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except FileNotFoundError:
        raise InputError(
            f"there is no configuration {path} in {Path.cwd()}: run this in a checkout of the repository"
        ) from None
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"can't read the configuration {path}: {error}") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} should map keys to values, but holds a {type(values).__name__}")
    for key, value in (overrides or {}).items():
        _set(values, key, value)
    return check_config(values, source=str(path))


def check_config(values: Mapping[str, Any], source: str = "the configuration") -> Config:
    """Turn a mapping into a `Config`, with the mirror taken from the environment where it names none."""
    try:
        config = Config.model_validate(dict(values))
    except ValidationError as error:
        lines = [_explain(detail) for detail in error.errors()]
        raise InputError(f"{source} is not valid:\n  " + "\n  ".join(lines)) from None
    mirror = config.mirror or os.environ.get(MIRROR_VARIABLE) or None
    return config.model_copy(update={"mirror": mirror})


def parse_overrides(settings: Iterable[str]) -> dict[str, Any]:
    """Read `key=value` settings; values are YAML (`stage_timing.counts=[10, 20]`)."""
    overrides = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not (key and equals):
            raise InputError(f"a setting is written key=value, not {setting!r}")
        try:
            overrides[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise InputError(f"the value of {setting!r} is no YAML: {error}") from error
    return overrides


def config_schema() -> dict[str, Any]:
    """The JSON Schema of `Config`."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | Config.model_json_schema()


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, last = key.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            raise InputError(f"{key!r} can't be set: {section!r} is a value, not a section")
        values = inner
    values[last] = value


def _explain(detail: Mapping[str, Any]) -> str:
    """One line for one of pydantic's errors: where, what is wrong, what was found."""
    # pydantic names the tried alternatives of a union too; those are no keys
    where = ".".join(str(part) for part in detail["loc"] if isinstance(part, int) or part.isidentifier())
    if detail["type"] != "extra_forbidden":
        return f"{where}: {detail['msg']}, found {detail['input']!r}"
    known = _keys_at(detail["loc"][:-1])
    close = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
    return f"{where}: there is no such key; {hint}"


def _keys_at(location: tuple[Any, ...]) -> list[str]:
    model: Any = Config
    for part in location:
        model = model.model_fields[part].annotation
    return list(model.model_fields)
