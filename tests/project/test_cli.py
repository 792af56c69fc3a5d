"""The command line is a thin shell with readable errors; the configuration has one definition; imports are light."""

import json
import logging
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import PackageNotFoundError
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
import typer
import yaml

from octopus import __version__, cli, doctor
from octopus.errors import InputError
from octopus_study import config
from octopus_study.cli import COMMANDS, HELP, commands
from octopus_study.config import MIRROR_VARIABLE, Config, check_config, config_schema, load_config, parse_overrides
from octopus_study.data.registry import load_registry
from octopus_study.timings import Timing, expected, read, remaining, rounded


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


def test_a_command_of_the_measurements_is_named_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: [])
    assert "no such command 'trace'; a clone of the repository adds" in octopus("trace", "x").stderr


@pytest.mark.parametrize("arguments", [("trace", "own-energy"), ("verify",), ("config",), ("measure", "arena")])
def test_outside_of_a_checkout_one_sentence_says_so(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = ("--manifest", "x.json", "--out", "y.csv") if arguments[0] == "measure" else ()
    result = octopus(*arguments, *files)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert "run this in a checkout of the repository" in result.stderr


def test_a_package_whose_commands_are_broken_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: [Unloadable()])
    result = octopus("tune", "--help")
    assert (result.exit_code, result.stdout.split()[:3]) == (0, ["usage:", "octopus", "tune"])
    assert "the commands of elsewhere:COMMANDS can't be loaded: no module named elsewhere" in result.stderr


def test_verbose_stands_before_the_command(root: Path) -> None:
    assert octopus("-v", "config", "--config", str(root / "config/quick.yaml")).exit_code == 0
    assert logging.getLogger("octopus").level == logging.getLogger("octopus_study").level == logging.DEBUG
    assert octopus("config", "--config", str(root / "config/quick.yaml")).exit_code == 0
    assert logging.getLogger("octopus").level == logging.getLogger("octopus_study").level == logging.INFO


@pytest.mark.parametrize("command", [*cli.COMMANDS, *HELP, "report numbers"])
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


def test_doctor_says_a_remedy_once_and_what_it_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path / "file" / "below"))
    (found,) = doctor._storage()
    assert (found.state, "no file can be made there" in found.detail) == (doctor.MISSING, True)
    two = [doctor.Finding("backend", name, doctor.MISSING, "not installed", "pip install both") for name in "ab"]
    assert [line.rpartition("by: ")[2] for line in doctor.lines(two)] == ["pip install both", "as a"]


@pytest.mark.parametrize(("name", "found", "machine", "known"), [
    ("opencv-python", "5.0.0.93", "aarch64", True), ("opencv-python", "5.0.0.93", "x86_64", False),
    ("opencv-python", "4.12.0.88", "aarch64", False), ("torch", "2.9.1+cu130", "x86_64", True),
    ("torch", "2.10.0", "x86_64", False), ("nvidia-nvimgcodec-cu13", "0.9.0.20", "x86_64", True),
])  # fmt: skip
def test_doctor_warns_of_versions_that_are_known_to_be_wrong(name, found, machine, known, root, monkeypatch):
    def version(package: str) -> str:
        if package != name:
            raise PackageNotFoundError
        return found

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(doctor.platform, "machine", lambda: machine)
    told = list(doctor._known_faults())
    assert [(one.name, one.state) for one in told] == [(name, doctor.BROKEN)] * known
    page = (root / "docs/limitations.md").read_text(encoding="utf-8")
    links = [row.rpartition("\t")[2] for row in (root / "octopus/known_faults.tsv").read_text().splitlines()[1:]]
    assert [link for link in links if link not in page] == []


def test_doctor_lines_and_json_say_the_same() -> None:
    shown, listed = octopus("doctor"), octopus("doctor", "--json")
    findings = json.loads(listed.stdout)
    assert shown.exit_code == listed.exit_code == 0
    assert tuple(dict.fromkeys(finding["part"] for finding in findings)) == doctor.PARTS
    assert len(shown.stdout.splitlines()) == len(findings)
    assert all(finding["part"] in shown.stdout for finding in findings)


def test_doctor_sees_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OCTOPUS_MIRROR", str(tmp_path))
    (tmp_path / "VisDrone2019-DET-val.zip").touch()
    found = {item.name: item for item in doctor.diagnose() if item.part == "data"}
    assert found["visdrone-val"].state == doctor.OK
    assert "OCTOPUS_MIRROR" in found["sentinel2-b04"].remedy


@pytest.fixture
def checkout(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the settings, which is no repository, and a mirror whose files are wrong."""
    (tmp_path / "config").mkdir()
    for name in ("config.yaml", "datasets.tsv", "timings.tsv"):
        (tmp_path / "config" / name).write_bytes((root / "config" / name).read_bytes())
    for dataset in load_registry().values():
        (tmp_path / "mirror" / dataset.filename).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mirror" / dataset.filename).write_bytes(b"wrong")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_add_gpu_names_all_that_a_reference_lacks_before_it_measures(checkout, monkeypatch):
    monkeypatch.setattr("os.getloadavg", lambda: (900.0, 0.0, 0.0))
    config = checkout / "config/config.yaml"
    config.write_text(config.read_text().replace("min_blocks: 20", "min_blocks: 3"))
    result = octopus("add-gpu", "--device", "cpu", "--mirror", "mirror")
    assert result.exit_code == 1 and "5 missing, and nothing was measured" in result.stderr
    for told in ("committed code: ", "settings: config/config.yaml changes measure", "average is 900.00", "data: "):
        assert told in result.stderr, result.stderr
    assert not list(checkout.glob("data/results")) and not list(checkout.glob("logs"))


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


@pytest.mark.parametrize(("key", "value", "message"), [
    ("device", "gpu", "device: Input should be 'auto', 'cpu' or 'cuda', found 'gpu'"),
    ("devic", "cpu", "devic: there is no such key; did you mean 'device'?"),
    ("measure.min_block", 3, "did you mean 'min_blocks'?"),
    ("measure.min_blocks", 0, "measure.min_blocks: Input should be greater than 0, found 0"),
    ("stage_timing.counts", [3, 1], "ascending order"),
    ("crop.size", [224], "crop.size"),
    ("distribution.workloads", ["normal"], "distribution.workloads.0"),
    ("machine", "../elsewhere", "machine"),
    ("raw_dir", "data/{raw}", "raw_dir: String should match pattern '^[^{}]*$', found 'data/{raw}'"),
])  # fmt: skip
def test_errors_say_where_what_and_what_is_allowed(standard: Path, key: str, value: object, message: str) -> None:
    with pytest.raises(InputError) as error:
        load_config(standard, {key: value})
    assert message in str(error.value)


def test_overrides_are_yaml() -> None:
    parsed = parse_overrides(["stage_timing.counts=[10, 20]", "mirror=null", "device=cpu"])
    assert parsed == {"stage_timing.counts": [10, 20], "mirror": None, "device": "cpu"}
    with pytest.raises(InputError, match="key=value"):
        parse_overrides(["device"])


def test_the_environment_names_the_mirror_where_the_configuration_does_not(standard, monkeypatch):
    monkeypatch.setenv(MIRROR_VARIABLE, "copies")
    assert load_config(standard).mirror == "copies"
    assert load_config(standard, {"mirror": "own"}).mirror == "own"


def test_the_readme_of_the_settings_names_those_that_exist(root: Path) -> None:
    named = set(re.findall(r"^\| `([\w.]+\w)[.*]*` \|", (root / "config/README.md").read_text(), re.MULTILINE))
    own = set(config.Common.model_fields) - {"raw_dir", "results_dir", "reference_dir", "sentinel2"}
    assert named == own | {"sentinel2.window"} and "window" in config.Sentinel2.model_fields


HEAVY = ("numba", "pandas", "matplotlib", "rasterio", "cv2", "cuda", "scipy", "torch")


SHOW_HELP = """
import contextlib, io, octopus.cli
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    octopus.cli.main(["--help"])
assert "power-selftest" in out.getvalue()
"""


@pytest.mark.parametrize(("code", "absent"), [
    ("import octopus", HEAVY),
    (SHOW_HELP, (*HEAVY, "typer")),
    # Each figure is drawn by a process of its own, and most of them would spend their time on that import.
    ("from octopus_study.report import outputs; outputs.figures()", ("pandas", "numba", "scipy")),
], ids=["the library", "help", "names of figures"])  # fmt: skip
def test_what_has_no_need_of_heavy_packages_loads_none(root: Path, code: str, absent: tuple[str, ...]) -> None:
    code += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(absent)


WHERE = ("Some CPU, 2 cores", "0123456789", "2026-01-01")
TIMED = [
    Timing("paper", "cpu", "all", 500, *WHERE),
    Timing("paper", "cpu", "arena", 80, *WHERE),
    Timing("verify", "cpu", "report", 90, *WHERE),
]


@pytest.mark.parametrize(("step", "effort", "seconds"), [
    ("arena", "core", 80), ("drone", "core", None), ("arena", "quick", None), ("report", "full", 90),
])  # fmt: skip
def test_a_step_takes_as_long_as_where_it_was_timed(root: Path, step: str, effort: str, seconds: float | None) -> None:
    assert expected(step, "cpu", effort, root / "data/reference", TIMED) == seconds


def test_a_full_run_takes_as_long_as_the_reference(root: Path) -> None:
    found = expected("arena", "cuda", "full", root / "data/reference", TIMED)
    assert found is not None and found > 100


@pytest.mark.parametrize(("seconds", "text"), [
    ([0.2], "about 1 s"), ([80], "about 80 s"), ([800, 40], "about 14 min"), ([800, None], "at least about 13 min"),
    ([None], ""), ([], ""),
])  # fmt: skip
def test_remaining_times_are_summed_and_rounded(seconds: list[float | None], text: str) -> None:
    assert remaining(seconds) == text
    assert len(seconds) != 1 or rounded(seconds[0]) == text


def test_help_lists_at_most_ten_targets_and_what_they_take(root: Path) -> None:
    shown = subprocess.run(["make", "help"], cwd=root, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^  make ([a-z-]+) {2,}(?!\d|.* min, )", shown, re.MULTILINE)
    assert 5 <= len(targets) <= 10
    for row in (row for row in read(root / "config/timings.tsv") if row.step == "all"):
        assert any(f"make {row.target} " in line and row.where in line for line in shown.splitlines()), row
