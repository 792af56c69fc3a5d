"""What tests of stand-ins share: settings of packages that would fetch something, and no reason told before."""

import os
import tempfile

import pytest

from octopus.integrations import common

for name, value in (("AUTOINSTALL", "false"), ("OFFLINE", "true"), ("CONFIG_DIR", tempfile.gettempdir())):
    os.environ.setdefault(f"YOLO_{name}", value)


@pytest.fixture(autouse=True)
def new_warnings(monkeypatch):
    """Reasons and versions that other tests were told of."""
    monkeypatch.setattr(common, "_warned", set())
    monkeypatch.setattr(common, "_newer", set())
