"""Quick runs of the studies on the CPU, and what of their rows a test looks at."""

from pathlib import Path

import pandas as pd

from octopus_study.config import load_config
from octopus_study.status import Answer

QUICK = Path(__file__).parents[3] / "config" / "quick.yaml"
MANIFESTS = {"satellite": "scene_manifest"}  # fixtures of other data than the drone's
SMALL = {
    "crop.size": [20, 24], "stage_timing.counts": [4, 9], "distribution.count": 7, "satellite.synthetic_side": 600,
    "drone.frame_rate": 30, "drone.detections": [2, 5], "drone.paced": True, "total_cost.ladder": True,
}  # fmt: skip


def quick_config(settings):
    return load_config(QUICK, {"device": "cpu", **SMALL, **settings})


def chosen(rows: pd.DataFrame, **where: object) -> pd.DataFrame:
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def values(rows: pd.DataFrame, **where: object) -> pd.Series:
    return chosen(rows, **where).set_index("block").value


def answers(rows: pd.DataFrame, **where: object) -> list[str]:
    found = chosen(rows, **where)
    return list(map(Answer, found.status, found.reason))
