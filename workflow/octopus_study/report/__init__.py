"""From result rows to numbers, figures, tables, verdicts and the paper.

Everything that a reader sees goes one way: result rows (``<study>.csv`` + ``<study>.json``) and the typed
published tables become ``numbers.csv``; figures, tables, claims and the paper read ``numbers.csv`` and
nothing else. A series or a picture that a figure draws is a file beside it.

What one study shows is one file of :mod:`octopus_study.report.studies`; everything else is common to all. The steps,
each with explicit inputs and outputs, so that a workflow rule is one call:

* ``build.build_numbers(results_dir, reference_dir, published_dir, out)``: ``numbers.csv`` and what lies beside it.
* ``claims.build_claims(numbers, claims_yaml, out)``: ``claims.csv``.
* ``outputs.build_tables(numbers, claims, out_dir)``: ``<name>.typ`` and ``.md`` for each of ``table_names()``.
* ``outputs.draw(name, numbers, out_stem)``: ``<out_stem>.pdf`` and ``.png`` of one of ``figures()``; ``draw_all``.
* ``paper.build_paper(paper_dir, build_dir, figures_dir, out)``: the paper as PDF, through Typst.
* ``add_reference.add_reference(results_dir, reference_dir, standard)``: a vetted run under ``reference_dir/<machine>``.
* ``power_selftest.write_trial(attempts, reason, out_dir)``: record, trace and plot of ``octopus power-selftest``.
* ``compare.compare_runs(results_dir, reference_dir)``: a data frame of this run beside the references.

``results_dir`` is this machine's run (``data/results/<machine>``; it may be absent or hold only some of the
studies), ``reference_dir`` is the folder with one folder per reference machine (``data/reference``),
``published_dir`` is ``data/published``. ``build_dir`` is the folder that holds all of the above
(``paper/build``); tables are built into ``build_dir/tables``, figures into ``figures_dir/<name>.pdf``.
"""

from __future__ import annotations
