"""The panel in JupyterLab in a real browser: by keyboard, stopped, everything named, and nothing asked outside.

One laboratory and one notebook for all of it, since opening them takes most of the time: the tests follow each other.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab_in_browser import PATIENCE_S, Opened, chromium, opened, write_notebook
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.wall,
    # Not imported, which takes a second in each process that only collects the tests.
    pytest.mark.skipif(importlib.util.find_spec("jupyterlab") is None, reason="JupyterLab is not installed"),
    pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine"),
]

# Two runs of each of two alternatives: what is looked at is the page, not the numbers.
CELLS = (
    "from docmind_lab.views.panels import tune",
    "panel = tune(runs=2, alternatives=('A', 'B'))\npanel",
)
FIGURE = ".docmind-panel figure img"


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: BROWSER_ARTEFACTS, or with the other files of the tests."""
    named = os.environ.get("BROWSER_ARTEFACTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The notebook after Run All Cells, its first runs done and drawn."""
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "panel.ipynb", *CELLS)
    with opened(folder, "panel.ipynb") as found:
        found.page.get_by_role("menuitem", name="Run", exact=True).click()
        found.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        found.until_status("complete, 4 of 4 runs")
        found.page.wait_for_selector(FIGURE, timeout=PATIENCE_S * 1000)
        yield found
    shutil.rmtree(folder)


def test_running_all_cells_draws_the_plot_and_its_table(notebook: Opened, artefacts: Path) -> None:
    # The last frame comes a moment after the last run.
    notebook.until("() => document.querySelectorAll('.docmind-panel table tbody tr').length === 2")
    assert notebook.page.get_attribute(FIGURE, "alt").startswith("Timeline of the calls")
    path = artefacts / "panel.png"
    notebook.page.locator(".docmind-panel").screenshot(path=path)
    assert path.stat().st_size > 0


def test_nothing_in_the_panel_is_a_serious_obstacle(notebook: Opened) -> None:
    from axe_playwright_python.sync_playwright import Axe

    for view in ("Timeline", "Completion", "Overrun", "Table"):
        tab = notebook.page.get_by_role("tab", name=view, exact=True)
        tab.click()
        notebook.page.locator(".docmind-panel .widget-tab-contents table >> visible=true").first.wait_for()
        found = Axe().run(notebook.page, context=".docmind-panel").response["violations"]
        serious = {item["id"]: item["nodes"] for item in found if item["impact"] in ("serious", "critical")}
        assert serious == {}, view
    notebook.page.get_by_role("tab", name="Timeline", exact=True).click()


def test_the_slider_moves_by_keyboard_and_plot_table_and_status_follow(notebook: Opened) -> None:
    slider = notebook.page.get_by_role("slider", name="Decision timeout (s)")
    before = notebook.page.get_attribute(FIGURE, "src"), notebook.page.inner_text(".docmind-panel table tbody")
    slider.focus()
    for _ in range(4):
        notebook.page.keyboard.press("ArrowLeft")
    # Every press is 5 %: 20 s become 16.6 s.
    notebook.until_status("16.6 s: complete, 4 of 4 runs")
    notebook.until("([at, src]) => document.querySelector(at)?.src !== src", [FIGURE, before[0]])
    notebook.until("text => document.querySelector('.docmind-panel table tbody').innerText !== text", before[1])
    assert slider.get_attribute("aria-valuetext") == "16.6 s"
    assert notebook.page.get_by_label("or type it (s)").input_value() == "16.6"
    live = notebook.page.locator(".docmind-status .widget-html-content")
    assert (live.get_attribute("role"), live.get_attribute("aria-live")) == ("status", "polite")


def test_every_control_is_reached_by_the_tabulator_key(notebook: Opened) -> None:
    notebook.page.get_by_role("slider", name="Decision timeout (s)").focus()
    reached = set()
    for _ in range(32):
        notebook.page.keyboard.press("Tab")
        reached.add(
            notebook.page.evaluate("document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText")
        )
    expected = {
        "or type it (s)",
        "A cooperative",
        "Deadline propagation",
        "Router injection",
        "Latency profile",
        "Fault",
    }
    assert expected | {"Runs of each", "Seed", "Clock", "Timeline", "Question (seed)"} <= {
        str(name).strip() for name in reached
    }


def test_router_injection_is_toggled_by_keyboard(notebook: Opened) -> None:
    before = notebook.page.get_attribute(FIGURE, "alt")
    notebook.page.get_by_label("Router injection").focus()
    notebook.page.keyboard.press("Space")
    notebook.until("() => !document.querySelector('.docmind-status').innerText.includes('complete')")
    notebook.until_status("complete, 4 of 4 runs")
    assert "router_injection=True" in notebook.page.inner_text(".docmind-code")
    notebook.until("([at, alt]) => document.querySelector(at)?.alt !== alt", [FIGURE, before])


def test_a_running_sweep_is_stopped_and_what_is_done_stays(notebook: Opened) -> None:
    stop = notebook.page.get_by_role("button", name="Stop")
    assert stop.is_disabled()
    field = notebook.page.get_by_label("Runs of each")
    field.fill("400")
    field.press("Enter")
    notebook.until("() => /[1-9][0-9]* of 800 runs/.test(document.querySelector('.docmind-status').innerText)")
    stop.click()
    notebook.until_status("stopped, ")
    # The button and the figure may follow the status a moment later; two figures would fail the wait.
    expect(stop).to_be_disabled()
    notebook.page.locator(f"{FIGURE} >> visible=true").wait_for()


def test_the_code_is_copied_with_a_button(notebook: Opened) -> None:
    notebook.page.get_by_role("button", name="Copy code").click()
    notebook.until("() => document.querySelector('.docmind-copy').innerText.includes('Copied')")
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    assert copied == notebook.page.inner_text(".docmind-code pre")
    assert "dl.compare(" in copied


def test_nothing_was_asked_of_other_machines_and_the_console_has_no_errors(notebook: Opened) -> None:
    assert notebook.refused == []
    assert notebook.errors == []
