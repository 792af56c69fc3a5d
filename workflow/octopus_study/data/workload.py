"""What a study measures: one frame and a pool of boxes, with the data set's name and a digest."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from octopus.errors import InputError
from octopus_study.data.proof import require_fetched, require_pinned
from octopus_study.data.visdrone import content_digest, load_frame, load_pool


@dataclass(frozen=True)
class Workload:
    """A frame and boxes in it."""

    dataset: str  # ``visdrone-val`` or ``synthetic-visdrone``
    synthetic: bool  # true for the generated sample
    frame: NDArray[np.uint8]  # (H, W, 3) uint8, RGB
    pool: NDArray[np.int32]  # (N, 4) int32, ``xyxy`` in pixels of `frame`
    sha256: str  # digest of the frame's and the pool's values, as they are measured


def load_workload(manifest_path: str | Path) -> Workload:
    """Load the frame and the boxes that a manifest of `octopus_study.data.fetch` points to; `DataError` as
    `octopus_study.data.proof.require_fetched` raises it."""
    manifest, root = require_fetched(manifest_path, ("visdrone", "visdrone-val"), content_digest)
    if not manifest.synthetic:
        require_pinned(root, manifest, manifest.sha256)
    frame, pool = load_frame(root), load_pool(root)
    return Workload(manifest.dataset, manifest.synthetic, frame, pool, _digest(frame, pool))


def sample_boxes(pool: NDArray[np.int32], n: int, seed: int = 42) -> NDArray[np.int32]:
    """Draw `n` boxes from the pool with ``RandomState(seed).choice``; returns C-contiguous (n, 4) int32. Without
    replacement while the pool has enough boxes, else with replacement."""
    if n < 0 or (n and not len(pool)):
        raise InputError(f"asked for {n} boxes from a pool of {len(pool)}; n must be 0 or more")
    chosen = RandomState(seed).choice(len(pool), n, replace=n > len(pool)) if n else []
    return np.ascontiguousarray(pool[np.asarray(chosen, dtype=np.intp)], dtype=np.int32)


def _digest(frame: NDArray[np.uint8], pool: NDArray[np.int32]) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(frame).tobytes())
    digest.update(pool.astype("<i4").tobytes())
    return digest.hexdigest()
