"""What a study measures: one frame and a pool of boxes, with the data set's name and a digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.data.proof import require_pinned, require_present, require_unchanged
from octopus_study.data.receipt import read_receipt
from octopus_study.data.visdrone import changed_files, content_digest, load_frame, load_pool
from octopus_study.errors import DataError


@dataclass(frozen=True)
class Workload:
    """A frame and boxes in it."""

    dataset: str  # ``visdrone-val`` or ``synthetic-visdrone``
    synthetic: bool  # true for the generated sample
    frame: NDArray[np.uint8]  # (H, W, 3) uint8, RGB
    pool: NDArray[np.int32]  # (N, 4) int32, ``xyxy`` in pixels of `frame`
    sha256: str  # digest of the frame's and the pool's values, as they are measured


def load_workload(receipt_path: str | Path) -> Workload:
    """Load the frame and the boxes that a receipt of `octopus_study.data.fetch` points to.

    Raises
    ------
    DataError
        The receipt or the data are missing, damaged or changed since the fetch, or the receipt is of another kind.
    """
    receipt_path = Path(receipt_path)
    receipt = read_receipt(receipt_path)
    if not receipt.dataset.endswith(("visdrone", "visdrone-val")):
        raise DataError(f"{receipt_path} is a receipt for {receipt.dataset}; a workload needs visdrone-val")
    root = receipt_path.parent / receipt.path
    require_present(root, receipt)
    digest = content_digest(root)
    if digest != receipt.sha256:
        require_unchanged(root, receipt, digest, changed_files(root, receipt.sha256))
    if not receipt.synthetic:
        require_pinned(root, receipt, digest)
    frame, pool = load_frame(root), load_pool(root)
    return Workload(receipt.dataset, receipt.synthetic, frame, pool, _digest(frame, pool))


def sample_boxes(pool: NDArray[np.int32], n: int, seed: int = 42) -> NDArray[np.int32]:
    """Draw `n` boxes from the pool with ``RandomState(seed).choice``; returns C-contiguous (n, 4) int32.

    Without replacement while the pool has enough boxes, else with replacement.
    """
    if n < 0 or (n and not len(pool)):
        raise InputError(f"asked for {n} boxes from a pool of {len(pool)}; n must be 0 or more")
    chosen = RandomState(seed).choice(len(pool), n, replace=n > len(pool)) if n else []
    return np.ascontiguousarray(pool[np.asarray(chosen, dtype=np.intp)], dtype=np.int32)


def _digest(frame: NDArray[np.uint8], pool: NDArray[np.int32]) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(frame).tobytes())
    digest.update(pool.astype("<i4").tobytes())
    return digest.hexdigest()
