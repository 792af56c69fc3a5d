"""Rows of a result that have given values in given columns."""

from __future__ import annotations

import pandas as pd


def chosen(rows: pd.DataFrame, **where: object) -> pd.DataFrame:
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def values(rows: pd.DataFrame, **where: object) -> pd.Series:
    """Their values, indexed by block."""
    return chosen(rows, **where).set_index("block").value


def answers(rows: pd.DataFrame, **where: object) -> list[str]:
    return list(chosen(rows, **where).answer)
