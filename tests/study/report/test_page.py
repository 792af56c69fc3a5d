"""The results page: what is in it without a browser, and what it does in headless Chromium where one is installed."""

import gzip
import html
import json
import re
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from committed_runs import CLAIMS, ROOT
from frames import draw_watched

from octopus_study.report import outputs
from octopus_study.report.claims import load_claims, read_claims
from octopus_study.report.claims.outcome import NOT_HERE
from octopus_study.report.frame import PUBLISHED, Frame
from octopus_study.report.outputs import figures
from octopus_study.report.page import build, build_page, content, libraries
from octopus_study.report.page.headlines import HEADLINES, headlines
from octopus_study.report.tables import overview
from octopus_study.report.trace import trace

DRAWN = "images"
PAPER = ROOT / "paper"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VOID = {"meta", "link", "img", "br", "hr", "input"}
CHECKS = (Path(__file__).parent / "page_checks.js").read_text(encoding="utf-8")
Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def page(full: Path, once: Once) -> Path:
    """The page of a report with this machine and both references, with one of its figures; what each figure reads is
    looked up by drawing all of them, and for this one alone here."""

    def fill(folder: Path) -> None:
        shutil.copy(full / "numbers.csv", folder)  # beside it goes what is read here, for other tests too little
        draw_watched(DRAWN, full / "numbers.csv", folder / DRAWN)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(outputs, "figures", lambda: {DRAWN: figures()[DRAWN]})
            build_page(folder / "numbers.csv", full / "claims.csv", CLAIMS, PAPER, folder, folder / "report.html")

    return once("page", fill) / "report.html"


class Elements(HTMLParser):
    """Every element with its attributes; an end tag that closes another element is a fault."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attributes}))
        self.open += [] if tag in VOID else [tag]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.found if name in attributes]


@pytest.fixture(scope="module")
def elements(page: Path) -> Elements:
    return Elements(page)


def unpacked(page: Path, name: str) -> str:
    (text,) = re.findall(f'id="packed-{name}">([^<]+)<', page.read_text(encoding="utf-8"))
    return gzip.decompress(b64decode(text)).decode()


def test_the_page_is_one_small_file_that_can_reach_nothing(page: Path, elements: Elements) -> None:
    assert page.stat().st_size <= 3_000_000
    policy = next(one["content"] for _, one in elements.found if "http-equiv" in one)
    assert policy.startswith("default-src 'none'; img-src data:;")
    sources = [*elements.values("src"), *elements.values("href")]
    assert {source[:5] for source in sources if not source.startswith("#")} == {"data:"}
    assert not re.search(r"url\(|@import", (Path(build.__file__).parent / "page.css").read_text())


def test_its_parts_fit_together(elements: Elements) -> None:
    assert not elements.open
    ids = elements.values("id")
    assert len(ids) == len(set(ids))
    within = [link[1:] for link in elements.values("href") if link.startswith("#") and "#trace:" not in link]
    assert {*within, *elements.values("aria-labelledby")} <= set(ids)
    headers = [one for tag, one in elements.found if tag == "th"]
    assert headers and all(one.get("scope") for one in headers)
    assert [tag for tag, _ in elements.found].count("caption") == 4
    assert all(one.get("alt") for tag, one in elements.found if tag == "img")


def test_every_claim_and_every_number_is_there_with_what_octopus_trace_prints(page, monkeypatch):
    monkeypatch.setattr(outputs, "figures", lambda: {DRAWN: figures()[DRAWN]})
    frame, claims = Frame.read(page.with_name("numbers.csv")), load_claims(CLAIMS)
    data, text = json.loads(unpacked(page, "data")), html.unescape(page.read_text(encoding="utf-8"))
    assert all(f'href="#trace:{claim.id}">{claim.claim}</a>' in text for claim in claims)
    ids = [number.id for number in frame]
    shown: list[list[int]] = []
    for steps in data["traces"]:  # each from the places of the trace before
        before = shown[-1] if shown else []
        shown.append([step + last for step, last in zip(steps, before + [0] * len(steps), strict=False)])
    assert [data["lines"][lines[0]] for lines in shown] == ids
    assert {len(column) for column in data["numbers"].values()} == {len(ids)}
    traces = dict(zip(ids, shown, strict=True)) | data["claims"]
    for name in (*ids[:: len(ids) // 8], claims[0].id, claims[-1].id):
        wanted = list(trace(name, frame, claims, PAPER, CLAIMS))
        assert [data["lines"][line] for line in traces[name]] == wanted, name


def test_a_claim_stands_in_one_row_with_what_each_machine_measured(full: Path) -> None:
    frame, judged = Frame.read(full / "numbers.csv"), read_claims(full / "claims.csv")
    scopes = content.judged_machines(frame, [[one.scope for one in judged]])
    found = {(one.claim_id, one.scope): one for one in judged}
    for row in content.claim_rows(load_claims(CLAIMS), judged, frame):
        known = [found.pop((row.id, scope)) for scope in scopes if (row.id, scope) in found]
        assert [cell for cell in row.cells if cell[0]] == [(one.verdict, one.measured) for one in known]
        assert row.verdict == content.NO_RUN or {one.verdict for one in known} >= set(row.verdict.split(", "))
        told = [one for one in known if one.verdict != NOT_HERE] or known
        assert all(one.reason in row.reason for one in told)
    assert not found


def test_the_page_begins_with_five_results_whose_bars_are_as_long_as_their_numbers(full: Path, page: Path) -> None:
    frame, claims = Frame.read(full / "numbers.csv"), {claim.id for claim in load_claims(CLAIMS)}
    assert len(HEADLINES) == 5 and {one.claim for one in HEADLINES} <= claims
    shown = headlines(frame)
    assert [one.claim for one, _, _ in shown] == [one.claim for one in HEADLINES]
    for one, machine, bars in shown:
        values = [bar.number.value for bar in bars]
        assert len(values) == len(one.parts.split()), one  # none has another name in the rows
        assert values == sorted(values) and bars[-1].share == 1, one
        assert [bar.share for bar in bars] == pytest.approx([value / values[-1] for value in values], abs=1e-4)
        assert {bar.number.machine for bar in bars} == {machine}
        assert len({bar.number.unit for bar in bars}) == 1 and any(bar.own for bar in bars)
    assert headlines(Frame([])) == []
    said = re.findall(r'"verdict [a-z-]+">([^<]+)</span>\. <small>', page.read_text(encoding="utf-8"))
    judged = {(one.claim_id, one.scope): str(one.verdict) for one in read_claims(full / "claims.csv")}
    assert said == [judged[one.claim, machine] for one, machine, _ in shown]


@pytest.mark.parametrize("report", ["alone", "old"])
def test_missing_runs_and_references_leave_rows_that_say_so(report: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(report)
    frame, claims = Frame.read(folder / "numbers.csv"), load_claims(CLAIMS)
    rows = content.claim_rows(claims, read_claims(folder / "claims.csv"), frame)
    assert {row.id for row in rows} == {claim.id for claim in claims}
    lacking = {row.study for row in rows if row.verdict == content.NO_RUN}
    assert bool(lacking) == (report == "old" or "Images" in lacking)
    unrun = {claim.id: claim for claim in claims if not frame.machines(claim.study)}
    assert {row.id for row in rows if row.verdict == content.NO_RUN} == set(unrun)
    for row in rows:
        if row.id in unrun:
            claim = unrun[row.id]
            assert claim.unmeasured or content.command(claim.study) in row.reason, row
    for section in content.sections(frame):
        shown = frame.shown(section["id"])
        assert bool(section["runs"]) == bool(shown), section
        assert section["first"] == (frame.machine_name(shown[0]) if shown else ""), section


def test_workloads_and_quantities_read_as_words_and_no_two_share_a_name(full: Path) -> None:
    frame = Frame.read(full / "numbers.csv")
    workloads: dict[tuple[str, str], set[str]] = {}
    quantities: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for number in frame:
        name = content.workload_name(number.study, number.workload)
        workloads.setdefault((number.study, name), set()).add(number.workload)
        columns = (number.quantity, number.derived, number.other)
        quantities.setdefault((number.study, content.quantity_name(number)), set()).add(columns)
    names = [*workloads.items(), *quantities.items()]
    assert [(name, found) for name, found in names if len(found) > 1 and name[0] != PUBLISHED] == []
    charts = [(one["id"], *one["chart"]) for one in content.sections(frame)]
    assert [one for one in charts if one[:2] not in quantities or (one[0], one[2]) not in workloads] == []


def test_methods_have_the_names_of_the_figures_and_no_two_share_one(full: Path) -> None:
    found: dict[str, dict[str, set[str]]] = {}
    for number in Frame.read(full / "numbers.csv"):
        name = content.method_name(number.study, number.method)
        found.setdefault(number.study, {}).setdefault(name, set()).add(number.method)
    assert found["total_cost"]["A: table, as published"] == {"lookup-published"}
    assert found["images"]["Octopus (bfloat16)"] == {"octopus-bf16"}
    assert found["image_shape"]["2 \u00d7 128²"] == {"128x2"}
    assert [(study, names) for study in found for names in found[study].values() if len(names) > 1] == []


def test_more_numbers_leave_smaller_figures_and_too_many_are_told(page, monkeypatch, caplog):
    section = {"id": "one", "title": "One", "runs": "", "first": "", "chart": ("", ""), "figures": {DRAWN: ""}}
    shown = {"sections": [section], "machines": overview.machines(Frame([])), "named": {}, "sources": {}, "packed": {}}
    shown |= {name: [] for name in ("headlines", "claims", "judged", "licences")}
    whole = build._fitting(shown, page.parent)
    monkeypatch.setattr(build, "LIMIT", len(whole) - 1)
    assert len(build._fitting(shown, page.parent)) < len(whole)
    monkeypatch.setattr(build, "LIMIT", 1000)
    assert len(build._fitting(shown, page.parent)) < len(whole)
    assert "too many numbers" in caplog.text


def test_without_its_libraries_the_page_has_its_static_parts(monkeypatch, caplog):
    monkeypatch.setitem(libraries._FILES, "vega", ("snakemake", "assets/elsewhere.js"))
    assert set(build.packed({})) == {"data"}
    assert "no charts and no sorting" in caplog.text


def test_a_browser_sorts_filters_draws_and_opens_traces(page: Path, tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no headless browser: none of {', '.join(BROWSERS)} is installed")
    copy = tmp_path / "report.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"<script>{CHECKS}</script></body>"))
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'user'}"]
    command += ["--virtual-time-budget=60000", "--enable-logging=stderr", "--dump-dom", copy.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    (found,) = re.findall(r'<pre id="checked">(.*?)</pre>', done.stdout, re.DOTALL) or [done.stderr[-3000:]]
    assert json.loads(html.unescape(found)) == dict.fromkeys(json.loads(html.unescape(found)), True)
    assert not re.findall(r"CONSOLE.*", done.stderr)
