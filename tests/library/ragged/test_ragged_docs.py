"""The examples of docs/ragged.md run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest


def examples(root: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (root / "docs/ragged.md").read_text(), flags=re.DOTALL)


def run(parts: list[str], root: Path) -> None:
    subprocess.run([sys.executable, "-c", "\n".join(parts)], cwd=root, check=True, timeout=300)


def test_examples_without_torch_run(root: Path) -> None:
    pytest.importorskip("pyarrow")
    parts = [part for part in examples(root) if "torch" not in part]
    assert len(parts) == 3
    run(parts, root)


@pytest.mark.gpu
def test_all_examples_but_those_of_arrow_run(root: Path) -> None:
    parts = [part for part in examples(root) if "pyarrow" not in part]
    assert len(parts) == 4
    run(parts, root)
