"""The configuration: one definition, readable errors."""

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from octopus.errors import InputError
from octopus_study.config import (
    MIRROR_VARIABLE,
    Common,
    Config,
    Sentinel2,
    check_config,
    config_schema,
    load_config,
    parse_overrides,
)


@pytest.fixture
def standard(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(MIRROR_VARIABLE, raising=False)
    return root / "config/config.yaml"


def test_the_committed_schema_is_that_of_the_models(root: Path) -> None:
    committed = yaml.safe_load((root / "workflow/schemas/config.schema.yaml").read_text())
    plain = yaml.safe_load(yaml.safe_dump(config_schema()))
    assert committed == plain, "run: octopus config --schema > workflow/schemas/config.schema.yaml"


def test_the_standard_configuration_names_every_default(standard: Path) -> None:
    assert load_config(standard) == Config()
    assert yaml.safe_load(standard.read_text()).keys() == Config.model_fields.keys()


@pytest.mark.parametrize("name", ["config.yaml", "core.yaml", "quick.yaml"])
def test_committed_configurations_fit_the_schema(root: Path, name: str) -> None:
    values = yaml.safe_load((root / "config" / name).read_text())
    jsonschema.validate(values, config_schema())
    check_config(values)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("device", "gpu", "device: Input should be 'auto', 'cpu' or 'cuda', found 'gpu'"),
        ("devic", "cpu", "devic: there is no such key; did you mean 'device'?"),
        ("measure.min_block", 3, "did you mean 'min_blocks'?"),
        ("measure.min_blocks", 0, "measure.min_blocks: Input should be greater than 0, found 0"),
        ("stage_timing.counts", [3, 1], "ascending order"),
        ("crop.size", [224], "crop.size"),
        ("distribution.workloads", ["normal"], "distribution.workloads.0"),
        ("machine", "../elsewhere", "machine"),
        ("raw_dir", "data/{raw}", "raw_dir: String should match pattern '^[^{}]*$', found 'data/{raw}'"),
    ],
)
def test_errors_say_where_what_and_what_is_allowed(standard: Path, key: str, value: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_config(standard, {key: value})
    assert message in str(error.value)


def test_overrides_are_yaml() -> None:
    assert parse_overrides(["stage_timing.counts=[10, 20]", "mirror=null", "device=cpu"]) == {
        "stage_timing.counts": [10, 20],
        "mirror": None,
        "device": "cpu",
    }
    with pytest.raises(InputError, match="key=value"):
        parse_overrides(["device"])


def test_the_environment_names_the_mirror_where_the_configuration_does_not(
    standard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MIRROR_VARIABLE, "copies")
    assert load_config(standard).mirror == "copies"
    assert load_config(standard, {"mirror": "own"}).mirror == "own"


def test_the_readme_of_the_settings_names_those_that_exist(root: Path) -> None:
    named = set(re.findall(r"^\| `([\w.]+\w)[.*]*` \|", (root / "config/README.md").read_text(), re.MULTILINE))
    own = set(Common.model_fields) - {"raw_dir", "results_dir", "reference_dir", "sentinel2"}
    assert named == own | {"sentinel2.window"} and "window" in Sentinel2.model_fields
