from octopus_study.report.charts.palette import *  # noqa: F403
