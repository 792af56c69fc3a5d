"""The command line is a thin shell with readable errors."""

from __future__ import annotations

import json
import logging
import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import typer
import yaml

from octopus import __version__, cli, doctor
from octopus.backends import cuda
from octopus.backends.cuda import memory
from octopus_study import doctor as study_doctor
from octopus_study.cli import COMMANDS, HELP, commands
from octopus_study.measure import machine


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


class Unloadable:
    """An entry point of a package that can't be imported."""

    name, value = "elsewhere", "elsewhere:COMMANDS"

    def load(self) -> None:
        raise ImportError("no module named elsewhere")


def octopus(*arguments: str) -> Result:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = end.code
    return Result(code, out.getvalue(), err.getvalue())


def test_version() -> None:
    assert octopus("--version") == (0, f"octopus {__version__}\n", "")


def test_help_lists_every_command_with_its_line() -> None:
    result = octopus("--help")
    assert result.exit_code == 0
    for name, command in {**cli.COMMANDS, **COMMANDS}.items():
        assert re.search(rf"^  {name} +{re.escape(command.help)}$", result.stdout, re.MULTILINE)
    assert octopus() == (2, result.stdout, "")


def test_lines_of_help_are_those_of_the_commands() -> None:
    group = typer.main.get_command(commands.app).commands
    assert {name: command.help.strip() for name, command in group.items()} == HELP


def test_an_unknown_command_is_named_with_those_near_it() -> None:
    result = octopus("dotor")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no such command 'dotor'; did you mean doctor?" in result.stderr


def test_a_package_whose_commands_are_broken_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: [Unloadable()])
    result = octopus("tune", "--help")
    assert (result.exit_code, result.stdout.split()[:3]) == (0, ["usage:", "octopus", "tune"])
    assert "the commands of elsewhere:COMMANDS can't be loaded: no module named elsewhere" in result.stderr


def test_verbose_stands_before_the_command(root: Path) -> None:
    assert octopus("-v", "config", "--config", str(root / "config/quick.yaml")).exit_code == 0
    assert logging.getLogger("octopus").level == logging.getLogger("octopus_study").level == logging.DEBUG
    assert octopus("config", "--config", str(root / "config/quick.yaml")).exit_code == 0
    assert logging.getLogger("octopus").level == logging.getLogger("octopus_study").level == logging.INFO


@pytest.mark.parametrize(
    "command",
    [
        "doctor",
        "tune",
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
    assert "usage" in result.stdout.lower()


def test_config_prints_every_default(root: Path) -> None:
    result = octopus("config", "--config", str(root / "config/quick.yaml"), "--set", "seed=7")
    values = yaml.safe_load(result.stdout)
    assert (values["seed"], values["measure"]["max_blocks"], values["sentinel2"]["window"][0]) == (7, 4, 9760)


def test_an_error_is_one_paragraph_and_exit_code_1(root: Path) -> None:
    result = octopus("config", "--config", str(root / "config/config.yaml"), "--set", "device=gpu")
    assert result.exit_code == 1
    assert "device: Input should be 'auto', 'cpu' or 'cuda'" in result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_validate_refuses_what_is_no_result(tmp_path: Path) -> None:
    result = octopus("validate", str(tmp_path / "notes.txt"))
    assert result.exit_code == 1
    assert "neither rows (.csv) nor provenance (.json)" in re.sub(r"\s+", " ", result.stderr)


def test_unknown_data_set_names_the_known_ones(tmp_path: Path) -> None:
    result = octopus("fetch", "imagenet", "--raw", str(tmp_path))
    assert result.exit_code == 1
    assert "visdrone-val" in result.stderr


def test_doctor_lines_and_json_say_the_same() -> None:
    shown, listed = octopus("doctor"), octopus("doctor", "--json")
    findings = json.loads(listed.stdout)
    assert shown.exit_code == listed.exit_code == 0
    assert tuple(dict.fromkeys(finding["part"] for finding in findings)) == doctor.PARTS
    assert len(shown.stdout.splitlines()) == len(findings)
    assert all(finding["part"] in shown.stdout for finding in findings)


def test_doctor_cuts_nothing_when_its_output_is_read_by_a_program() -> None:
    lines = octopus("doctor").stdout.splitlines()
    for finding in doctor.diagnose():
        if finding.state == doctor.MISSING:
            assert any(finding.name in line and line.endswith(finding.remedy) for line in lines)


def test_doctor_says_where_it_looked_for_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OCTOPUS_MIRROR", raising=False)
    assert "not in data/raw; no mirror (OCTOPUS_MIRROR is not set)" in octopus("doctor").stdout
    monkeypatch.setenv("OCTOPUS_MIRROR", str(tmp_path))
    assert f"not in data/raw; not in the mirror {tmp_path}" in octopus("doctor").stdout


@pytest.mark.parametrize("text", ["1,2,30,40", "[1, 2, 30, 40]", "full", '"full"'])
def test_a_window_is_written_as_its_help_says(text: str) -> None:
    assert commands._window(text) in ([1, 2, 30, 40], "full")
    assert "column,row,width,height" in octopus("fetch", "--help").stdout


def test_doctor_says_what_would_provide_each_missing_thing() -> None:
    findings = doctor.diagnose()
    assert [item for item in findings if item.state == doctor.BROKEN] == []
    assert [item for item in findings if item.state == doctor.MISSING and not item.remedy] == []


def test_doctor_survives_a_check_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def sensor() -> None:
        raise RuntimeError("unforeseen [machine]")

    monkeypatch.setattr(doctor, "CHECKS", (("sensor", sensor), ("storage", doctor._storage)))
    monkeypatch.setattr(doctor, "entry_points", lambda group: [Unloadable()])
    broken, other, unloadable = doctor.diagnose()
    assert (broken.part, broken.state) == ("sensor", doctor.BROKEN)
    assert "unforeseen [machine]" in broken.detail
    assert (other.part, other.state) == ("storage", doctor.OK)
    assert (unloadable.part, unloadable.state) == ("elsewhere", doctor.BROKEN)
    assert octopus("doctor").exit_code == 0


def test_doctor_tells_a_gpu_and_its_board(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"name": "H200", "board": None, "driver": "580.1", "power_limit_w": 700.0}
    monkeypatch.setattr(cuda, "missing", lambda: None)
    monkeypatch.setattr(cuda, "compute_capability", lambda: (9, 0))
    monkeypatch.setattr(cuda.device, "current", lambda: SimpleNamespace(name="H200"))
    monkeypatch.setattr(memory, "total_bytes", lambda: 141 << 30)
    monkeypatch.setattr(machine, "machine_facts", lambda device: {"gpu": facts})
    findings = {item.name: item.detail for item in (*doctor._device(), *study_doctor.device())}
    assert findings == {
        "GPU": "H200",
        "compute capability": "9.0",
        "memory": "141 GiB",
        "driver": "580.1",
        "power limit": "700 W",
    }


def test_doctor_sees_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OCTOPUS_MIRROR", str(tmp_path))
    (tmp_path / "VisDrone2019-DET-val.zip").touch()
    found = {item.name: item for item in doctor.diagnose() if item.part == "data"}
    assert found["visdrone-val"].state == doctor.OK
    assert "OCTOPUS_MIRROR" in found["sentinel2-b04"].remedy
