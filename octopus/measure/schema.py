"""The JSON Schemas of ``workflow/schemas``, the one description of what a valid file is."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from octopus.errors import MeasureError
from octopus.measure._files import repository_root

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def load_schema(name: str) -> dict[str, Any]:
    """Read ``workflow/schemas/<name>.schema.yaml``.

    Raises
    ------
    MeasureError
        The schema is not beside the package, as when only the wheel was installed.
    """
    import yaml

    path = repository_root() / "workflow" / "schemas" / f"{name}.schema.yaml"
    if not path.is_file():
        raise MeasureError(
            f"The schema {path} was not found. Measuring needs the repository: clone it and run "
            "`pip install -e .` there."
        )
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@cache
def validator(name: str) -> Draft202012Validator:
    """Return the compiled validator of a schema."""
    from jsonschema import Draft202012Validator

    schema = load_schema(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def first_violation(name: str, record: Any) -> str | None:
    """Say the first thing that is wrong with `record`, or None."""
    error = next(validator(name).iter_errors(record), None)
    if error is None:
        return None
    where = "/".join(str(part) for part in error.absolute_path) or "(whole)"
    return f"{where}: {error.message}"
