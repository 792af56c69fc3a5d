"""A package that is missing or broken is a reason, never a crash."""

import sys
from unittest.mock import MagicMock

import numpy as np
import pytest
from crop_methods import BOXES, job, padded_items

from octopus.backends import cpu
from octopus_study.baselines import availability
from octopus_study.baselines.availability import Unavailable, need, need_torch, require_room
from octopus_study.baselines.graphs import PaddedGraph
from octopus_study.studies import context


def test_a_missing_package_and_how_to_get_it():
    with pytest.raises(Unavailable, match=r"^Warp Drive is not installed \(pip install warp\)$"):
        need("octopus_warp_drive", "Warp Drive", "pip install warp")


def test_torch_has_the_threads_of_the_library(monkeypatch):
    """By itself it has those of OMP_NUM_THREADS, which Snakemake sets to its `--cores`."""
    torch = MagicMock(__file__="torch.py")
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(availability, "_installed", lambda module: True)
    before = cpu.set_num_threads(3)
    try:
        assert need_torch("cpu", "baselines") is torch
        torch.set_num_threads.assert_called_once_with(3)
        context._set_threads(2)
        torch.set_num_threads.assert_called_with(2)
        assert cpu.get_num_threads() == 2
    finally:
        context._set_threads(before)


def test_a_folder_of_stubs_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "octopus_stubs").mkdir()
    (tmp_path / "octopus_stubs" / "__init__.pyi").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unavailable, match="is not installed"):
        need("octopus_stubs", "Warp Drive")


def test_too_little_memory_says_both_amounts(monkeypatch):
    monkeypatch.setattr("octopus.backends.cuda.memory.free_bytes", lambda: 1233)
    require_room("it", "cuda", 1233)
    with pytest.raises(Unavailable, match=r"it needs 1,234 bytes on the GPU for this batch, 1,233 are free"):
        require_room("it", "cuda", 1234)


def test_padding_puts_each_crop_in_a_corner():
    boxes = BOXES[[0, 3, 4]]
    method = object.__new__(PaddedGraph)
    method.job = job("cpu", boxes)
    (padded,) = method.inputs()
    method.batch.host.fill(7)
    method.prepare()
    assert np.array_equal(padded.owner, padded_items(boxes))
