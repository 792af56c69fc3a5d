"""The results page, ``figures/report.html``: claims, charts, figures and every number with its trace, in one file that
needs no network."""

from octopus_study.report.page.build import build_page

__all__ = ["build_page"]
