"""Imports go down only, and the top package stays light."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("numba", "pandas", "matplotlib", "rasterio", "cv2", "cuda", "scipy", "torch")


def python(code: str, root: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout


def test_modules_import_only_from_floors_below(root: Path) -> None:
    command = [Path(sys.executable).parent / "lint-imports", "--no-cache"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_octopus_loads_nothing_heavy(root: Path) -> None:
    code = "import sys, octopus; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    assert set(python(code, root).split()).isdisjoint(HEAVY)


def test_help_of_the_command_line_loads_nothing_heavy(root: Path) -> None:
    code = (
        "import contextlib, io, sys, octopus.cli\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):\n"
        "    octopus.cli.main(['--help'])\n"
        "assert 'power-selftest' in out.getvalue()\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    assert set(python(code, root).split()).isdisjoint({*HEAVY, "typer"})


def test_knowing_the_figures_loads_no_pandas(root: Path) -> None:
    """Each figure is drawn by a process of its own, and most of them would spend their time on that import."""
    code = "import sys; from octopus_study.report import outputs; outputs.figures(); print(*sys.modules)"
    assert {"pandas", "numba", "scipy"}.isdisjoint(python(code, root).split())
