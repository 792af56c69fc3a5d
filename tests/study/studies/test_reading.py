"""Pages with known text, what is counted on them, and the study with a stand-in for RapidOCR's engine."""

import re
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from octopus_study.measure import read_rows, validate_rows
from octopus_study.studies.reading import engine, study
from octopus_study.studies.reading.pages import draw, edits

PAGE = draw(900, 700, 3)


class Session:
    def run(self, names, given):
        time.sleep(0.004)
        return given

    run_with_iobinding = run


class Reader:
    """Reads what was drawn, every `wrong`-th line without its first letter, by the steps of RapidOCR's engine."""

    def __init__(self, sessions, wrong, pause):
        self.wrong, self.pause = wrong, pause
        self.models = [
            SimpleNamespace(session=SimpleNamespace(session=one), postprocess_op=lambda found: found)
            for one in sessions
        ]

    def _load_det_model(self):
        return self.models[0]

    def _load_cls_model(self):
        return self.models[1]

    def _load_rec_model(self):
        return self.models[2]

    def _network(self, model):
        time.sleep(self.pause)
        return model.postprocess_op(model.session.session.run([], {}))

    def crop_text_regions(self, lines):
        time.sleep(self.pause)

    def detect_and_crop(self):
        self._network(self.models[0])
        self.crop_text_regions([])

    def cls_and_rotate(self):
        self._network(self.models[1])

    def recognize_txt(self):
        self._network(self.models[2])

    def __call__(self, pixels):
        for step in (self.detect_and_crop, self.cls_and_rotate, self.recognize_txt):
            step()
        texts = [line.text[(number + 1) % self.wrong == 0 :] for number, line in enumerate(PAGE.lines)]
        found = SimpleNamespace(boxes=np.array([line.corners for line in PAGE.lines]), txts=tuple(texts))
        return type("Found", (), {"__len__": lambda self: len(found.txts), **vars(found)})()


def rows_of(context, wrong=1000, pause=0.01, **further):
    sessions = [Session() for _ in range(3)]
    engines = {"octopus": Reader(sessions, wrong, 0.0), "rapidocr": Reader(sessions, 1000, pause)}
    engines |= {name: Reader(sessions, 1000, longer) for name, longer in further.items()}
    part = replace(study.plan(context)[0], measure=lambda context, part: study.measured(context, part, engines, [PAGE]))
    rows = part.rows(context)
    validate_rows(rows)
    return rows, {(row.quantity, row.method): row.value for row in rows}


def test_a_page_has_letters_of_all_kinds_where_it_says():
    heights = [np.linalg.norm(line.corners[3] - line.corners[0]) for line in PAGE.lines]
    angles = {round(np.degrees(np.arctan2(*(line.corners[1] - line.corners[0])[::-1]))) for line in PAGE.lines}
    assert {0, 90} < angles and 180 in {abs(angle) for angle in angles}
    assert max(heights) > 4 * min(heights)
    dark = PAGE.pixels[..., 0] < 128
    for line in PAGE.lines:  # within its corners there is ink, and all ink lies within some
        x, y = np.floor(line.corners.min(0)).astype(int), np.ceil(line.corners.max(0)).astype(int)
        assert dark[x[1] : y[1], x[0] : y[0]].any(), line.text
        dark[x[1] - 1 : y[1] + 1, x[0] - 1 : y[0] + 1] = False
    assert not dark.any()
    assert np.array_equal(draw(900, 700, 3).pixels, PAGE.pixels) and draw(900, 700, 4).lines != PAGE.lines


@pytest.mark.parametrize(("a", "b", "count"), [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)])
def test_edits(a, b, count):
    assert edits(a, b) == edits(b, a) == count


def test_texts_belong_to_the_line_on_which_they_lie():
    boxes, texts = [line.corners for line in PAGE.lines], [line.text for line in PAGE.lines]
    assert PAGE.texts(boxes[::-1], texts[::-1]) == [*texts, ""] and PAGE.mistakes([*texts, ""]) == 0
    first = PAGE.lines[0].corners
    halves = [np.array([first[0], middle, middle, first[3]]) for middle in (first.mean(0),)]
    halves.append(np.array([first.mean(0), first[1], first[2], first.mean(0)]))
    found = PAGE.texts([halves[1], halves[0], first + 5000], ["right", "left", "nowhere"])
    assert found[0] == "left right" and found[-1] == "nowhere"
    assert PAGE.texts(None, None) == [""] * (len(texts) + 1)
    assert PAGE.mistakes([""] * (len(texts) + 1)) == sum(map(len, texts))


def test_steps_are_told_apart(quick_context):
    _, value = rows_of(quick_context("reading"))
    for method in study.METHODS:
        steps = {step: value[step, method] for step in engine.STEPS}
        assert steps["inputs"] == pytest.approx(steps["page"] + steps["lines"])
        assert steps["networks"] >= 12
        assert steps["beside"] + steps["networks"] == pytest.approx(value["whole", method], rel=0.05)
    assert value["page", "rapidocr"] >= 10 and value["lines", "rapidocr"] >= 30
    assert value["lines_equal", "octopus"] == 1 and value["character_errors", "octopus"] == 0
    assert value["boxes", "rapidocr"] == value["lines", "pages"] == len(PAGE.lines)


def test_lines_that_are_read_otherwise_are_counted(quick_context):
    rows, value = rows_of(quick_context("reading"), wrong=2)
    half = len(PAGE.lines) // 2
    assert value["lines_equal", "octopus"] == pytest.approx(1 - half / len(PAGE.lines))
    assert value["character_errors", "octopus"] == pytest.approx(half / value["characters", "pages"])
    assert value["character_errors", "rapidocr"] == 0
    (own,) = {row.reason for row in rows if row.method == "octopus"}
    assert own == f"{half} of {len(PAGE.lines)} lines are read otherwise; lines are interpolated once, not twice"


def test_slow_pages_get_fewer_blocks_or_a_reason(quick_context):
    _, value = rows_of(quick_context("reading", **{"reading.seconds": 4.0}), pause=0.2)  # both ways together 0.8 s
    assert value["blocks", "pages"] in (1, 2) and value["whole", "octopus"]
    assert ("whole", "octopus-again") not in value
    rows, value = rows_of(quick_context("reading", **{"reading.seconds": 1.5}), pause=0.2)
    assert value["boxes", "rapidocr"] == len(PAGE.lines)
    (why,) = {row.reason for row in rows if row.value is None}
    assert re.fullmatch(
        r"RapidOCR takes \S+ s for a page: no time is left for this \(n = 1, reading.seconds = 1.5\)", why
    )


def test_of_more_than_two_ways_the_slowest_are_left_out(quick_context):
    rows, value = rows_of(quick_context("reading", **{"reading.seconds": 5.0}), pause=0.0, slow=0.2)
    assert value["blocks", "pages"] == 3 and value["whole", "octopus"] and value["whole", "rapidocr"]
    assert value["boxes", "slow"] == len(PAGE.lines)
    (why,) = {row.reason for row in rows if row.value is None and row.quantity == "whole"}
    assert re.fullmatch(r"a page takes \S+ s: too slow for 3 blocks .*, reading.seconds = 5\)", why)


def test_without_rapidocr_every_row_says_so(runs):
    rows = read_rows(runs["reading"])
    if rows.value.notna().any():
        pytest.skip("RapidOCR is installed")
    pages = rows[rows.workload == "pages"]
    assert len(pages) and pages.reason.str.contains("RapidOCR is not installed").all()
