"""Rows of a study, damaged as a slow, broken or poor machine might leave them, and what a reader then sees of them."""

import dataclasses
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from committed_runs import CLAIMS, PUBLISHED, REFERENCE
from matplotlib.text import Text

from octopus_study.report.build import for_authors, numbers_of, vetted, write_series
from octopus_study.report.claims import judge, load_claims
from octopus_study.report.frame import Frame
from octopus_study.report.outputs import figure_of, figures, tables_of
from octopus_study.report.runs import Run, load_runs
from octopus_study.report.studies import report_of
from octopus_study.report.tables.writers import markdown, typst

WHY = "nothing works here"
FEW = 3  # blocks
_NO_NUMBER = re.compile(r"\b(nan|inf)\b", re.I)
Mutate = Callable[[pd.DataFrame], pd.DataFrame]


class Mutation(NamedTuple):
    name: str
    apply: Mutate


def drop(column: str, value: object) -> Mutation:
    return Mutation(f"without {column} {value}", lambda rows: rows[rows[column] != value])


def disable(column: str, value: object) -> Mutation:
    """Let the rows with a value say why they have none, one for all blocks, as studies do."""

    def apply(rows: pd.DataFrame) -> pd.DataFrame:
        hit = rows[column] == value
        keys = ["dataset", "workload", "n", "method", "layer", "quantity"]
        gone = rows[hit].drop_duplicates(keys).assign(block=0, value=np.nan, status="unavailable", reason=WHY)
        return pd.concat([rows[~hit], gone], ignore_index=True)

    return Mutation(f"{column} {value} unavailable", apply)


def blank(seed: int) -> Mutation:
    """Empty a third of the values, whatever their answer says."""

    def apply(rows: pd.DataFrame) -> pd.DataFrame:
        hit = np.random.default_rng(seed).random(len(rows)) < 1 / 3
        return rows.assign(value=rows["value"].mask(hit))

    return Mutation(f"values emptied, seed {seed}", apply)


def fixed() -> Iterator[Mutation]:
    yield Mutation("one block", lambda rows: rows[rows["block"] == rows["block"].min()])
    yield Mutation("no values", lambda rows: rows.assign(value=np.nan))
    yield Mutation("nothing works", lambda rows: disable("study", rows["study"].iat[0]).apply(rows))
    yield Mutation("no rows", lambda rows: rows[:0])
    yield blank(0)


def single(rows: pd.DataFrame) -> Iterator[Mutation]:
    """Yield what is done to one method, quantity, layer, workload or count after the other."""
    for column in ("method", "quantity", "layer", "workload", "n"):
        for value in rows[column].unique():
            yield drop(column, value)
            yield disable(column, value)


def chosen(rows: pd.DataFrame, count: int, seed: int = 0) -> list[Mutation]:
    """Return those of `fixed` and `count` of `single`, all of them where that is negative."""
    every = list(single(rows))
    some = every if count < 0 else random.Random(seed).sample(every, min(count, len(every)))
    return [*fixed(), *some]


@cache
def real_runs(machine: str) -> dict[str, Run]:
    return {run.study: run for run in load_runs(None, REFERENCE) if run.scope == machine}


def few_blocks(run: Run) -> Run:
    """Return a run with few blocks, or few counts where it has windows; its numbers are soon derived."""
    if report_of(run.study).windows:
        run = dataclasses.replace(run, rows=run.rows[run.rows["n"].isin(run.rows["n"].unique()[:2])])
    else:
        indexed = run.rows[["quantity", "layer"]].isin(report_of(run.study).indexed).any(axis=1)
        run = dataclasses.replace(run, rows=run.rows[indexed | (run.rows["block"] < FEW)])
    return run


def damaged(run: Run, mutation: Mutation) -> Run:
    return dataclasses.replace(run, rows=mutation.apply(run.rows).reset_index(drop=True))


@cache
def _claims() -> list:
    return load_claims(CLAIMS)


def shown(run: Run, folder: Path, drawn: bool = True) -> Iterator[str]:
    """Yield every text that the report makes of one run: of numbers, the paper, claims, tables and figures."""
    runs = vetted([run])
    numbers = numbers_of(runs, PUBLISHED)
    frame = Frame(numbers)
    for number in frame:
        yield from (number.text, number.note, number.interval)
    for_authors(frame)
    judgements = [judgement for claim in _claims() for judgement in judge(claim, frame)]
    yield from (text for one in judgements for text in (one.measured, one.reason))
    for name, table in tables_of(frame, judgements).items():
        yield from (typst(name, table), markdown(table))
    if drawn:
        write_series(runs, folder)
        yield from _drawn(Frame(numbers, folder), run.study)


def _drawn(frame: Frame, study: str) -> Iterator[str]:
    for name, (of, _) in figures().items():
        if of == study:
            figure, _ = figure_of(name, frame)
            figure.set_dpi(30)
            figure.canvas.draw()
            yield from (text.get_text() for text in figure.findobj(Text) if text.get_visible())


def not_numbers(texts: Iterator[str]) -> list[str]:
    """Return the words around what is no number in texts."""
    hits = ((text, match) for text in texts if (match := _NO_NUMBER.search(text)))
    return [text[max(0, match.start() - 40) : match.end() + 40] for text, match in hits]
