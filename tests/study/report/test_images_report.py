"""Images of any size: tables of each kind of machine, and another answer in the figure."""

from __future__ import annotations

from pathlib import Path

from frames import SOURCE, lines, number, text
from matplotlib.axes import Axes
from matplotlib.text import Text

from octopus_study.names import IMAGE_BATCHES
from octopus_study.report.charts import style
from octopus_study.report.frame import Frame, Key, make_number
from octopus_study.report.studies import images
from octopus_study.status import different
from octopus_study.studies.images.job import BATCHES


def test_tables_have_their_own_kind_of_machine_and_say_what_is_missing(full: Path) -> None:
    gpu, cpu = lines(full, "images"), lines(full, "images_cpu")
    assert len([row for row in gpu if row[0].endswith("rows")]) == 4
    assert any("(a)" in row[-2] for row in gpu)  # DALI
    assert sum(row[0].startswith("32 of") for row in cpu) == 4  # two batches of two machines
    assert set(IMAGE_BATCHES) == set(BATCHES)


def test_another_answer_is_hatched_and_named() -> None:
    whole = Key("m", "images", "thumbnails", 256, "octopus", "end_to_end", "host")
    found = [
        text(Key("m", "machine", quantity="kind"), "gpu"),
        text(Key("m", "images", quantity="measured_on"), "2026-11-21"),
        number(whole, "ms", 1.0),
        make_number(whole.but(method="dali"), SOURCE, "ms", 3.0, answer=different("why")),
        number(whole.but(method="cvcuda"), "ms", 2.0),
        *(number(whole.speedup(name), "ratio", value) for name, value in (("dali", 3.0), ("cvcuda", 2.0))),
    ]
    figure = images.draw(Frame(found))
    (axis,) = [axis for axis in figure.findobj(Axes) if axis.get_xlabel().startswith("Time")]
    assert [bar.get_hatch() for bar in axis.patches] == [style.HATCH, None]
    words = " ".join(" ".join(part.get_text() for part in figure.findobj(Text)).split())
    assert "the answer differs. DALI: why." in words and "Different answer" in words
