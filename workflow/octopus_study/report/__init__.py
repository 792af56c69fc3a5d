"""From result rows to numbers, figures, tables, verdicts and the paper.

Everything that a reader sees goes one way: result rows (``<study>.csv`` + ``<study>.json``) and the typed published
tables become ``numbers.csv``; figures, tables, claims and the paper read ``numbers.csv`` and nothing else. A series or
a picture that a figure draws is a file beside it.

What one study shows is one file of :mod:`octopus_study.report.studies`; everything else is common to all. The steps,
each with explicit inputs and outputs, so that a workflow rule is one call: ``build.build_numbers``,
``claims.build_claims``, ``outputs.build_tables`` and ``draw``, ``paper.build_paper``; and beside that way
``add_reference``, ``power_selftest.write_trial`` and ``compare.compare_runs``.

``results_dir`` is this machine's run (``data/results/<machine>``; it may be absent or hold only some of the studies),
``reference_dir`` is the folder with one folder per reference machine (``data/reference``), ``published_dir`` is
``data/published``. ``build_dir`` is the folder that holds what is built (``paper/build``); tables are built into
``build_dir/tables``, figures into ``figures_dir/<name>.pdf``.
"""
