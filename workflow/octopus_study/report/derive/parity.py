"""What only the parity study knows: the largest difference to any library under each setting."""

from __future__ import annotations

import math
from collections.abc import Iterator

from octopus_study.report.derive.samples import groups, origin
from octopus_study.report.labels import PARITY_PEERS, human
from octopus_study.report.numbers import Number, make_number
from octopus_study.report.runs import Run


def parity_numbers(run: Run) -> Iterator[Number]:
    """Yield, for each setting, the largest difference and the library that it is from."""
    for group, rows in groups(run, quantity="max_abs_difference"):
        known = rows[rows["value"].notna()]
        if known.empty:
            continue
        worst = known.loc[known["value"].idxmax()]
        prefix = f"{run.scope}.{run.study}.{group.workload}.n{group.n}"
        where = (origin(run, group.dataset), group.selector())
        note = f"largest over {len(known)} libraries, {worst['method']}"
        value = float(worst["value"])
        yield make_number(f"{prefix}.largest_difference", *where, worst["unit"], value, note=note)
        name = human(PARITY_PEERS, str(worst["method"]))
        yield make_number(f"{prefix}.farthest_library", *where, "text", math.nan, text=name, note=note)
