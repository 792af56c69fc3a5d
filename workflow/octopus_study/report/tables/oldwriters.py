# ruff: noqa
from octopus_study.report.tables.writers import MISSING  # noqa: F401
from octopus_study.report.tables.writers import Table as New


def Table(name, caption, header, rows, text_columns=(0,), widths=()):
    return New(caption, header, rows, text_columns, widths)
