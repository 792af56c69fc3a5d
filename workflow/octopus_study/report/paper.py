"""Typesetting the paper and its supplement with the Typst compiler of the PyPI wheel: no TeX, no fonts and no packages
from elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from octopus.errors import InputError
from octopus_study.errors import DataError
from octopus_study.measure._files import whole_files
from octopus_study.report.frame import Frame
from octopus_study.report.literals import check_paper

DOCUMENTS = ("octopus", "supplement")
# Typst 0.15 can't nest the tags of a PDF for some layouts with floats over both columns (its issues 8487 and 8776, both
# open): about one in ten where floats pile up, none seen since each study is flushed. Should one come, the same text
# with a little more space around its floats has another layout.
_TAG_FAULTS = ("tags weren't properly closed", "internal error: parent group")
_NUDGES = 24  # all that `paper/lib.typ` makes of a number


def build_paper(
    paper_dir: str | Path,
    build_dir: str | Path,
    figures_dir: str | Path,
    out: str | Path,
    document: str = DOCUMENTS[0],
) -> Path:
    """Check the sources against the numbers and compile them to PDF.

    Parameters
    ----------
    paper_dir : path
        Folder of ``octopus.typ`` and ``supplement.typ``.
    build_dir : path
        Folder of ``numbers.csv``, ``numbers.json``, ``claims.csv`` and ``tables/``.
    figures_dir : path
        Folder of the figures' PDF files.
    out : path
        The PDF to write (a ``.png`` with ``{p}`` in its name gives pages as pictures).
    document : str
        One of `DOCUMENTS`.

    Raises
    ------
    InputError
        The text holds a number that is not in ``numbers.csv``; each place is named.
    DataError
        Typst can't compile the paper.
    """
    import typst

    problems = check_paper(paper_dir, Frame.read(Path(build_dir) / "numbers.csv"))
    if problems:
        raise InputError(f"{len(problems)} numbers of the paper have no origin:\n" + "\n".join(problems))
    main = Path(paper_dir).resolve() / f"{document}.typ"
    root, inputs = typst_inputs(paper_dir, build_dir, figures_dir, document)
    for nudge in range(_NUDGES):
        try:
            with whole_files(Path(out).parent) as folder:
                typst.compile(
                    str(main),
                    output=str(folder / Path(out).name),
                    root=root,
                    sys_inputs=inputs | {"nudge": str(nudge)},
                    ignore_system_fonts=True,
                )
        except (typst.TypstError, RuntimeError) as error:
            if any(fault in str(error) for fault in _TAG_FAULTS) and nudge + 1 < _NUDGES:
                continue
            raise DataError(f"Typst can't compile {main}: {error}") from error
        break
    return Path(out)


def typst_inputs(
    paper_dir: str | Path, build_dir: str | Path, figures_dir: str | Path, document: str = DOCUMENTS[0]
) -> tuple[str, dict[str, str]]:
    """Return Typst's root and what the sources are told: which document it is, and where numbers and figures are.

    Typst reads nothing outside of its root; all paths are given as absolute ones below it.
    """
    paper, build, figures = (Path(path).resolve() for path in (paper_dir, build_dir, figures_dir))
    root = Path(os.path.commonpath([paper, build, figures]))
    places = {"build": build, "figures": figures}
    inputs = {name: f"/{path.relative_to(root).as_posix()}" for name, path in places.items()}
    return str(root), inputs | {"document": document}
