"""The results page, ``figures/report.html``: claims, charts, figures and every number with its trace, in one file that
needs no network.

``build``
    The file, within its size.
``content``
    What it shows, from numbers and claims.
``libraries``
    The JavaScript of others, from the packages that bring it.
``page.html``, ``page.css``, ``page.js``
    How it looks and what it does.
"""

from octopus_study.report.page.build import build_page

__all__ = ["build_page"]
