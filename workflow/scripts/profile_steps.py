"""Launches every version of the crop kernel once, for a profiler to look at; needs a GPU and the fetched data.

    ncu --clock-control none --csv --page raw -k regex:"stream_kernel|crop_kernel" --metrics \\
        gpu__time_duration.sum,smsp__inst_executed.sum,smsp__issue_active.avg.pct_of_peak_sustained_active,\\
        dram__throughput.avg.pct_of_peak_sustained_elapsed,launch__registers_per_thread,\\
        l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed,\\
        smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio \\
        python workflow/scripts/profile_steps.py data/raw/visdrone-val.json

Launches come in the order that the log names; octopus/kernels/cuda/stream.py tells what was seen.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from octopus_study.config import Crop
from octopus_study.data.workload import Workload, load_workload, sample_boxes
from octopus_study.measure.cuda import synchronize
from octopus_study.peers.fused import OctopusOnGpu
from octopus_study.peers.job import CropJob, make_job
from octopus_study.studies.arena.ladder import LARGE_SIDE, VERSIONS
from octopus_study.studies.arena.versions import KernelVersion
from octopus_study.studies.arena.workloads import uniform_boxes

COUNT = 1000
log = logging.getLogger("profile_steps")


def jobs(workload: Workload) -> dict[str, CropJob]:
    """Boxes of the data set, and large ones."""
    height, width, _ = workload.frame.shape
    boxes = {
        "visdrone": sample_boxes(workload.pool, COUNT),
        "large": uniform_boxes(COUNT, width, height, LARGE_SIDE, seed=42),
    }
    crop = Crop()
    return {
        name: make_job(workload.frame, found, crop.size, crop.mean, crop.std, "cuda")
        for name, found in boxes.items()
    }


def main(receipt: str) -> None:
    """One launch per version and kind of boxes."""
    for name, job in jobs(load_workload(Path(receipt))).items():
        versions = [KernelVersion(job, version, means) for version, means in VERSIONS.items()]
        for method in (*versions, OctopusOnGpu(job)):
            log.info("%s: %s", name, method.name)
            method.kernels()
            synchronize()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main(sys.argv[1])
