"""Digests: what changes them, and what doesn't."""

from pathlib import Path

import pytest

from octopus_study.measure import config_digest, digest, source_digest

CODE = '''"""Module."""
import math


class Area:
    """Of a circle."""

    factor: float = math.pi

    def of(self, radius: float) -> float:
        """Return it."""
        # squared
        return self.factor * radius**2
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "octopus" / "kernels").mkdir(parents=True)
    (tmp_path / "octopus" / "crop.py").write_text(CODE)
    (tmp_path / "octopus" / "kernels" / "store.cu").write_text("// store\nst.global.cs;")
    (tmp_path / "octopus" / "kernels" / "fill.py").write_text("def fill(out):\n    out[:] = 1\n")
    return tmp_path


def digest_of(package: Path, code: str) -> str:
    (package / "octopus" / "crop.py").write_text(code)
    return source_digest(["octopus"], root=package)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# squared", "# the radius, squared"),
        ('"""Return it."""', '"""Return the area."""'),
        ('        """Return it."""\n', ""),
        ("self.factor * radius**2", "(self.factor\n                * radius ** 2)"),
        ("\n\n\nclass", "\n\nclass"),
        ("factor: float = math.pi", 'factor: float = math.pi\n    """Of proportion."""'),
        ('"""Module."""', "'Another'"),
    ],
)
def test_comments_docstrings_and_formatting_do_not_count(package, old, new):
    before = digest_of(package, CODE)
    assert old in CODE
    assert digest_of(package, CODE.replace(old, new)) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("radius**2", "radius**3"),
        ("radius**2", "radius*2"),
        ("radius**2", "-radius**2"),
        ("radius**2", "radius**2.0"),
        ("math.pi", "math.e"),
        ("radius: float", "r: float"),
        ("math.pi", "None"),
        ("import math", "from math import *"),
        ("return self", "yield self"),
        ("import math\n", "import math\nimport os\n"),
        ("    def of", "    @staticmethod\n    def of"),
    ],
)
def test_code_counts(package, old, new):
    before = digest_of(package, CODE)
    assert old in CODE
    assert digest_of(package, CODE.replace(old, new)) != before


@pytest.mark.parametrize("damage", ["", "{", "{}", "[1]", "null"])
def test_what_a_source_says_is_kept_and_made_anew_where_it_is_damaged(damage, tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPUS_CACHE_DIR", str(tmp_path))
    content = CODE.encode()
    made = digest.source.__wrapped__(content)
    (kept,) = tmp_path.rglob("*.json")
    with monkeypatch.context() as patch:
        patch.setattr(digest, "_read", None)
        assert digest.source.__wrapped__(content) == made
    kept.write_text(damage)
    assert digest.source.__wrapped__(content) == made
    assert digest.source.__wrapped__(content + b"x = 1\n").meaning != made.meaning


def test_defaults_keep_their_places(package):
    """A keyword without a default is not the same as one whose neighbour has it."""
    assert digest_of(package, "def f(*, a, b=1): 0") != digest_of(package, "def f(*, a=1, b): 0")
    assert digest_of(package, "x = {**a, 1: 2}") != digest_of(package, "x = {1: 2, **a}")


def test_other_files_count_by_their_bytes(package):
    before = source_digest(["octopus"], root=package)
    (package / "octopus" / "kernels" / "store.cu").write_text("// write\nst.global.cs;")
    assert source_digest(["octopus"], root=package) != before


def test_what_is_generated_does_not_count(package):
    before = source_digest(["octopus"], root=package)
    for name in ("__pycache__/crop.cpython-311.pyc", ".hidden/x.py", "kernels/__pycache__/fill.1.nbi", "crop.py~"):
        (package / "octopus" / name).parent.mkdir(exist_ok=True)
        (package / "octopus" / name).write_text("x")
    assert source_digest(["octopus"], root=package) == before


def test_the_config_digest_knows_science_only():
    config = {"seed": 42, "measure": {"min_blocks": 20, "max_blocks": 200}, "mirror": None, "raw_dir": "data/raw"}
    turned = {"raw_dir": "/big", "mirror": "/mnt", "measure": {"max_blocks": 200, "min_blocks": 20}, "seed": 42}
    assert config_digest(config) == config_digest(turned)
    for other in ({"seed": 43}, {"measure": {"min_blocks": 21, "max_blocks": 200}}):
        assert config_digest(config) != config_digest(config | other)
