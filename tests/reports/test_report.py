"""Reports of made-up runs: what is in them, what is not, and that a page needs nothing but itself."""

from __future__ import annotations

import dataclasses
import functools
import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from golden import assert_golden
from matplotlib.axes import Axes
from sample_calls import call
from sample_runs import LEVELS, MANIFEST, sample_run, study_of
from well_formed import assert_well_formed

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.findings.finding import Code
from docmind_lab.findings.study import Study
from docmind_lab.tables.frames import to_frame
from docmind_lab.views.plots.files import save_study
from docmind_lab.views.plots.look import Canvas, axes_for
from docmind_lab.views.reports import Report, build_report, figures, write_report
from docmind_lab.views.reports.build import _advice
from docmind_lab.views.reports.figures import image_of
from docmind_lab.views.reports.report_page import Figure, as_html

ROLES = ("router", "planner", "retrieval")
LATE = {"outcome": "timed_out", "answered_in_time": False, "stop_reason": "deadline"}


def made(
    levels: tuple[str, ...] = LEVELS, timeouts_s: tuple[float, ...] = (2.0,), repeats: int = 4, **changes
) -> Study:
    """A study in which every other run is late: cut at the deadline by A, C and D, worked on by B, left by nobody."""
    runs, calls = [], []
    for timeout_s in timeouts_s:
        for level in levels:
            for repeat in range(repeats):
                row = {
                    "decision_timeout_s": timeout_s,
                    "horizon_s": 5 * timeout_s,
                    "run_id": f"{level}-{timeout_s:g}-{repeat}",
                }
                if repeat % 2:
                    row |= _late(level, timeout_s)
                runs.append(sample_run(level, repeat, **{**row, **changes}))
                of_run = {"alternative": level, "input_tokens": 10.0, "output_tokens": 5.0}
                calls += [
                    call(runs[-1].run_id, role, 0.4 * place, 0.4 * place + 0.3, f"{place}.0.1", **of_run)
                    for place, role in enumerate(ROLES)
                ]
    manifest = MANIFEST | {"complete": True, "settings": {"agents": {"max_retries": 1}}, "versions": {"python": "3.11"}}
    return dataclasses.replace(study_of(runs, calls), manifest=manifest)


def _late(level: str, timeout_s: float) -> dict[str, object]:
    if level == "unguarded":
        return {"returned_at_s": 3 * timeout_s, "quiescent_at_s": 3 * timeout_s, "caller_overrun_s": 2 * timeout_s,
                "work_overrun_s": 2 * timeout_s, "answered_in_time": False, "busy_after_deadline_s": 2 * timeout_s,
                "calls_after_deadline": 3.0, "tokens_after_deadline": 50.0}  # fmt: skip
    if level == "hard_timeout":
        left = {"quiescent_at_s": 3 * timeout_s, "work_overrun_s": 2 * timeout_s, "calls_after_deadline": 3.0,
                "busy_after_deadline_s": 2 * timeout_s, "source_recall": 0.0}  # fmt: skip
        return LATE | {"returned_at_s": timeout_s} | left
    return LATE | {"returned_at_s": timeout_s, "quiescent_at_s": timeout_s}


@functools.cache
def whole() -> Report:
    """The report of one condition with everything in it; drawing takes seconds, so all tests look at this one."""
    return build_report(made())


@functools.cache
def page() -> BeautifulSoup:
    return BeautifulSoup(as_html(whole()), "html.parser")


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports whose images nobody looks at: everything is computed, and not drawn."""
    monkeypatch.setattr(figures, "image_of", lambda draw: b"a picture")


def test_every_figure_has_its_numbers_beside_it() -> None:
    figures = [block for section in whole().sections for block in section.blocks if isinstance(block, Figure)]
    assert len(figures) == 3
    for figure in figures:
        assert figure.tables
        assert not any(table.shown.empty for table in figure.tables)


def test_a_page_asks_for_nothing_but_itself() -> None:
    html = as_html(whole())
    for tag in page().find_all(True):
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            value = str(tag.get(name, "#"))
            assert value.startswith(("#", "data:image/")), f"{tag.name} {name}={value[:40]}"
    assert not page().find_all(["script", "link", "iframe", "object", "base"])
    assert "url(" not in html
    assert "@import" not in html
    assert not re.search(r"https?://", html)
    assert len(html.encode()) < 5_000_000


def test_a_page_is_read_in_order_by_who_cannot_see_it() -> None:
    soup = page()
    assert len(soup.find_all("h1")) == 1
    levels = [int(tag.name[1]) for tag in soup.find_all(re.compile(r"^h[1-6]$"))]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert all(len(image["alt"]) > 40 for image in soup.find_all("img"))
    assert all(figure.find("figcaption") for figure in soup.find_all("figure"))
    for table in soup.find_all("table"):
        assert table.find("caption").text
        assert all(head.get("scope") in ("col", "row") for head in table.find_all("th"))
        widths = {len(row.find_all(["th", "td"])) for row in table.find_all("tr")}
        assert len(widths) == 1
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))
    assert {link["href"][1:] for link in soup.find_all("a")} <= set(ids)


def test_every_element_of_a_page_is_closed() -> None:
    assert_well_formed(as_html(whole()))


def test_a_page_has_a_dark_theme_and_a_way_to_print() -> None:
    style = page().find("style").text
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    assert "background: #ffffff" in style  # figures keep their paper


def test_long_tables_are_folded_and_short_ones_are_not() -> None:
    for folded in page().find_all("details"):
        assert len(folded.find_all("tr")) > 17
    arms = next(section for section in page().find_all("section") if section["id"] == "arms")
    assert arms.find("details") is None
    assert "A cooperative" in arms.find("table").text


def test_what_a_study_holds_is_never_markup(undrawn: None) -> None:
    hostile = {"study_id": "<script>alert(1)</script>", "left_out": ["<img src=x onerror=y>"]}
    html = as_html(build_report(changed(made(("unguarded", "cooperative")), **hostile)))
    assert "<script" not in html
    assert "<img src=x" not in html
    assert "&lt;script&gt;" in html


def test_settings_can_be_pasted() -> None:
    assert list(_advice(("Choose A.", "Settings: A=1 B=2"))) == ["Choose A.", Code("A=1 B=2")]


NEVER = {
    "returned_at_s": float("nan"),
    "outcome": "unfinished",
    "answered_in_time": False,
    "caller_overrun_s": float("nan"),
    "stop_reason": "horizon",
}
FAILED_CELLS = [{"cell": "00-003", "reason": "SimulationStalled: it slept"}]


def changed(study: Study, **manifest: object) -> Study:
    return Study(study.runs, study.calls, study.events, {**study.manifest, **manifest})


def words_of(report: Report) -> str:
    """What a person reads of the report's sections: a line for each paragraph, and for each row of a table."""
    main = BeautifulSoup(as_html(report), "html.parser").main
    tags = main.find_all(["h2", "h3", "p", "li", "dt", "dd", "pre", "summary", "caption", "figcaption", "img", "tr"])
    lines = [tag.get("alt") or " | ".join(tag.stripped_strings) for tag in tags]
    return "\n".join(f"\n{line}" if tag.name == "h2" else line for tag, line in zip(tags, lines, strict=True))


def test_every_report_is_the_one_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer first, differences to A or the first arm that enforces, and what could not be said with its reason."""
    drawn = whole()
    monkeypatch.setattr(figures, "image_of", lambda draw: b"a picture")
    studies = {
        "without A": made(("unguarded", "hard_timeout", "stop_flag")),
        "six timeouts, of which four are drawn": made(("unguarded", "cooperative"), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0), 2),
        "runs that are not over": study_of([sample_run("unguarded", repeat, **NEVER) for repeat in range(3)]),
    }
    reports = {"all alternatives": drawn} | {name: build_report(each) for name, each in studies.items()}
    assert_golden(Path(__file__).with_suffix(".txt"), {name: words_of(each) for name, each in reports.items()})


def test_a_study_that_is_not_complete_says_so_with_the_cells_that_failed(undrawn: None) -> None:
    study = changed(made(("unguarded", "cooperative")), complete=False, failed_cells=FAILED_CELLS)
    soup = BeautifulSoup(as_html(build_report(study)), "html.parser")
    assert soup.find(class_="state").text == "Not complete"
    assert "00-003: SimulationStalled: it slept" in soup.find(id="asked").text


def test_a_study_without_runs_has_no_report() -> None:
    with pytest.raises(ConfigurationError, match="has no runs"):
        build_report(Study(to_frame("runs", []), to_frame("calls", []), to_frame("events", []), {}))


def test_a_page_is_written_whole_and_another_ending_is_refused(tmp_path: Path) -> None:
    path = write_report(whole(), tmp_path / "new" / "r.html")
    assert path.read_text(encoding="utf-8") == as_html(whole())
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    with pytest.raises(ConfigurationError, match=r"r\.md: a report is an HTML page; name a file that ends in \.html"):
        write_report(whole(), tmp_path / "r.md")


def test_an_image_is_small_and_the_same_every_time() -> None:
    def draw(canvas: Canvas) -> Axes:
        ax = axes_for(canvas, 4.0, 1.0)
        ax.plot(range(2_000), range(2_000), "o")
        return ax

    assert image_of(draw) == image_of(draw)
    assert len(image_of(draw)) < 40_000


def test_a_saved_study_has_tables_manifest_figures_and_a_summary(tmp_path: Path) -> None:
    save_study(made(("unguarded", "cooperative"), repeats=2), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "calls.parquet", "events.parquet", "manifest.json", "overrun.png", "runs.parquet", "summary.md", "timeline.png",
    ]  # fmt: skip
    pd.testing.assert_frame_equal(Study.load(tmp_path).runs, made(("unguarded", "cooperative"), repeats=2).runs)


def test_no_line_of_the_page_begins_with_a_list_mark() -> None:
    """Trust 21: the map of the scorecard was printed with the marks of a text file."""
    assert not [block.text for block in page().find_all(["p", "li"]) if block.text.strip().startswith(("- ", "* "))]
