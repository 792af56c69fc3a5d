"""The examples of docs/images.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def test_its_examples_run(root: Path) -> None:
    parts = re.findall(r"```python\n(.*?)```", (root / "docs/images.md").read_text(), flags=re.DOTALL)
    assert len(parts) == 3
    subprocess.run([sys.executable, "-c", "\n".join(parts)], cwd=root, check=True, timeout=300)
