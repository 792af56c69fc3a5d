"""The JSON Schemas of ``workflow/schemas``, the one description of what a valid file is."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from octopus_study.errors import MeasureError
from octopus_study.measure._files import repository_root

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def load_schema(name: str) -> dict[str, Any]:
    """Read ``workflow/schemas/<name>.schema.yaml``, which only a checkout has."""
    import yaml

    path = repository_root() / "workflow" / "schemas" / f"{name}.schema.yaml"
    if not path.is_file():
        raise MeasureError(
            f"The schema {path} was not found. Measuring needs the repository: clone it and run "
            "`pip install -e .` there."
        )
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@cache
def validator(name: str, part: str | None = None) -> Draft202012Validator:
    """Return the validator of a schema, or of one of its properties."""
    from jsonschema import Draft202012Validator

    schema = load_schema(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema if part is None else schema["properties"][part])


def first_violation(name: str, record: Any, part: str | None = None) -> str | None:
    """Say the first thing that is wrong with a record, or with its property `part`; None when valid."""
    error = next(validator(name, part).iter_errors(record), None)
    if error is None:
        return None
    where = "/".join(map(str, error.absolute_path)) or part or "(whole)"
    return f"{where}: {error.message}"
