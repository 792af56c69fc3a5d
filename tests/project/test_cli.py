"""The command line is a thin shell with readable errors."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from octopus_study import cli, doctor
from octopus_study.cli import app, shared
from octopus_study.studies.concurrency import trace as two_models_trace
from typer.testing import CliRunner, Result

from octopus import __version__


def octopus(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_version() -> None:
    assert octopus("--version").output.strip() == f"octopus {__version__}"


@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "config",
        "fetch",
        "measure",
        "validate",
        "power-selftest",
        "report numbers",
        "report promote",
        "report power-checks",
    ],
)
def test_every_command_has_help(command: str) -> None:
    result = octopus(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_config_prints_every_default(root: Path) -> None:
    result = octopus("config", "--config", str(root / "config/quick.yaml"), "--set", "seed=7")
    values = yaml.safe_load(result.stdout)
    assert (values["seed"], values["measure"]["max_blocks"], values["sentinel2"]["window"][0]) == (7, 4, 9760)


def test_an_error_is_one_paragraph_and_exit_code_1(root: Path) -> None:
    result = octopus("config", "--config", str(root / "config/config.yaml"), "--set", "device=gpu")
    assert result.exit_code == 1
    assert "device: Input should be 'auto', 'cpu' or 'cuda'" in result.stderr
    assert "Traceback" not in result.output


def test_validate_refuses_what_is_no_result(tmp_path: Path) -> None:
    result = octopus("validate", str(tmp_path / "notes.txt"))
    assert result.exit_code == 1
    assert "neither rows (.csv) nor provenance (.json)" in re.sub(r"\s+", " ", result.stderr)


def test_unknown_data_set_names_the_known_ones(tmp_path: Path) -> None:
    result = octopus("fetch", "imagenet", "--raw", str(tmp_path))
    assert result.exit_code == 1
    assert "visdrone-val" in result.stderr


def test_doctor_table_and_json_say_the_same() -> None:
    table, listed = octopus("doctor"), octopus("doctor", "--json")
    findings = json.loads(listed.stdout)
    assert table.exit_code == listed.exit_code == 0
    assert {finding["part"] for finding in findings} >= {"machine", "device", "backend", "data", "sensor"}
    assert all(finding["part"] in table.output for finding in findings)


def test_doctor_cuts_nothing_when_its_output_is_read_by_a_program() -> None:
    lines = octopus("doctor").output.splitlines()
    for finding in doctor.diagnose():
        if finding.state == doctor.MISSING:
            assert any(finding.name in line and line.endswith(finding.remedy) for line in lines)


def test_doctor_says_where_it_looked_for_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OCTOPUS_MIRROR", raising=False)
    assert "not in data/raw; no mirror (OCTOPUS_MIRROR is not set)" in octopus("doctor").output
    monkeypatch.setenv("OCTOPUS_MIRROR", str(tmp_path))
    assert f"not in data/raw; not in the mirror {tmp_path}" in octopus("doctor").output


@pytest.mark.parametrize("text", ["1,2,30,40", "[1, 2, 30, 40]", "full", '"full"'])
def test_a_window_is_written_as_its_help_says(text: str) -> None:
    assert cli._window(text) in ([1, 2, 30, 40], "full")
    assert "column,row,width,height" in octopus("fetch", "--help").output


def test_doctor_says_what_would_provide_each_missing_thing() -> None:
    findings = doctor.diagnose()
    assert [item for item in findings if item.state == doctor.BROKEN] == []
    assert [item for item in findings if item.state == doctor.MISSING and not item.remedy] == []


def test_doctor_survives_a_check_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def _sensor() -> None:
        raise RuntimeError("unforeseen [machine]")

    monkeypatch.setattr(doctor, "CHECKS", (_sensor, doctor._storage))
    broken, *others = doctor.diagnose()
    assert (broken.part, broken.state) == ("sensor", doctor.BROKEN)
    assert "unforeseen [machine]" in broken.detail
    assert [item.part for item in others] == ["storage", "storage"]
    assert octopus("doctor").exit_code == 0


def test_doctor_sees_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OCTOPUS_MIRROR", str(tmp_path))
    (tmp_path / "VisDrone2019-DET-val.zip").touch()
    found = {item.name: item for item in doctor.diagnose() if item.part == "data"}
    assert found["visdrone-val"].state == doctor.OK
    assert "OCTOPUS_MIRROR" in found["sentinel2-b04"].remedy


def test_a_profiled_process_ends_at_once_and_another_goes_on(monkeypatch):
    ended = []
    monkeypatch.setattr(shared.os, "_exit", ended.append)
    monkeypatch.setattr(shared.logging, "shutdown", lambda: None)
    monkeypatch.setattr(two_models_trace, "profiled", set())
    shared.end_if_profiled()
    assert not ended
    two_models_trace.profiled.add("PyTorch")
    shared.end_if_profiled()
    assert ended == [0]
