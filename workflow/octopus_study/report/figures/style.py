from octopus_study.report.charts.palette import *  # noqa: F403
from octopus_study.report.charts.style import *  # noqa: F403
