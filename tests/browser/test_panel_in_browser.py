"""The panel in a real browser, in JupyterLab and in marimo: by keyboard, stopped, narrow, dark, everything named.

One notebook in each for all of it, since opening it takes most of the time: the tests follow each other.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lab_in_browser import PATIENCE_S, Opened, chromium, opened, write_notebook
from playwright.sync_api import expect

pytestmark = [
    pytest.mark.browser,
    pytest.mark.wall,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on this machine"),
]

# Two runs of each of two alternatives: what is looked at is the page, not the numbers.
CELL = "import docmind_lab as dl; panel = dl.tune(runs=2, alternatives=('A', 'B')); panel"
NOTEBOOKS = {"jupyterlab": "panel.ipynb", "marimo": "panel.py"}
FIGURE = ".docmind-panel figure svg"
# What is wider than the place that it has, but for the regions that scroll.
CLIPPED = """panel => [panel, ...panel.querySelectorAll('*:not(.scroll, .scroll *, svg *)')]
  .filter(node => node.clientWidth && node.scrollWidth > node.clientWidth + 1 && !node.closest('.scroll'))
  .map(node => node.outerHTML.slice(0, 200))"""


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept: BROWSER_ARTEFACTS, or with the other files of the tests."""
    named = os.environ.get("BROWSER_ARTEFACTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("artefacts")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module", params=NOTEBOOKS)
def host(request: pytest.FixtureRequest) -> str:
    # Not imported, which takes a second in each process that only collects the tests.
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture(scope="module")
def notebook(host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The notebook after its cell has run, its first runs done and drawn."""
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / NOTEBOOKS[host], CELL)
    with opened(folder, NOTEBOOKS[host]) as found:
        if host == "jupyterlab":
            found.page.get_by_role("menuitem", name="Run", exact=True).click()
            found.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        found.until_status("complete, 4 of 4 runs")
        found.page.locator(FIGURE).wait_for(timeout=PATIENCE_S * 1000)
        yield found
    shutil.rmtree(folder)


def panel_of(notebook: Opened) -> Any:
    return notebook.page.locator(".docmind-panel")


def obstacles(notebook: Opened, host: str) -> dict[str, Any]:
    """What axe finds serious in the panel."""
    from axe_playwright_python.sync_playwright import Axe

    panel: Any = ".docmind-panel"
    context = panel if host == "jupyterlab" else {"fromShadowDom": ["marimo-anywidget", panel]}
    found = Axe().run(notebook.page, context=context).response["violations"]
    return {
        item["id"]: [node["html"] for node in item["nodes"]]
        for item in found
        if item["impact"] in ("serious", "critical")
    }


def test_running_the_cell_draws_the_plot_and_its_table(notebook: Opened, host: str, artefacts: Path) -> None:
    # The last frame comes a moment after the last run.
    expect(panel_of(notebook).locator("table tbody tr")).to_have_count(2)
    assert notebook.page.locator(FIGURE).get_attribute("aria-label").startswith("Timeline of the calls")
    expect(panel_of(notebook).locator(".page")).not_to_have_class("page old")
    panel_of(notebook).screenshot(path=artefacts / f"{host}.png")


@pytest.mark.parametrize("view", ["Completion", "Overrun", "Table", "Timeline"])
def test_nothing_in_a_view_is_a_serious_obstacle(notebook: Opened, host: str, view: str) -> None:
    notebook.page.get_by_role("tab", name=view, exact=True).click()
    expect(panel_of(notebook).get_by_role("tabpanel", name=view)).to_be_visible()
    panel_of(notebook).locator(f'.page > [aria-label="{view}"]').wait_for()
    assert obstacles(notebook, host) == {}


def test_the_slider_moves_by_keyboard_and_plot_table_and_status_follow(notebook: Opened) -> None:
    slider = notebook.page.get_by_role("slider", name="Decision timeout (s)")
    typed = notebook.page.get_by_label("or type it (s)")
    typed.fill("20")
    typed.press("Enter")
    notebook.until_status("20 s: complete, 4 of 4 runs")
    words = notebook.page.locator(FIGURE).get_attribute("aria-label")
    slider.focus()
    for _ in range(4):
        notebook.page.keyboard.press("ArrowLeft")
    # Every press is 5 %: 20 s become 16.6 s.
    notebook.until_status("16.6 s: complete, 4 of 4 runs")
    expect(notebook.page.locator(FIGURE)).not_to_have_attribute("aria-label", words)
    expect(slider).to_have_attribute("aria-valuetext", "16.6 s")
    expect(typed).to_have_value("16.6")


def test_every_control_is_reached_by_the_tabulator_key(notebook: Opened) -> None:
    notebook.page.get_by_role("slider", name="Decision timeout (s)").focus()
    reached = set()
    for _ in range(26):
        notebook.page.keyboard.press("Tab")
        reached.add(
            notebook.page.evaluate(
                "() => { let it = document.activeElement; while (it.shadowRoot?.activeElement) it = "
                "it.shadowRoot.activeElement; return (it.labels?.[0]?.innerText || it.innerText).trim() }"
            )
        )
    fields = {"or type it (s)", "A cooperative", "Deadline propagation", "Router injection", "Latency profile", "Fault"}
    assert fields | {"Runs of each", "Seed", "Clock", "Run", "Timeline", "Question", "Copy code"} <= reached


def test_a_fault_is_chosen_from_a_list_and_then_whom_it_strikes(notebook: Opened) -> None:
    notebook.page.get_by_label("Fault").select_option("hang")
    notebook.until_status("complete, 4 of 4 runs")
    expect(panel_of(notebook).locator("pre").last).to_contain_text("faults='hang'")
    notebook.page.get_by_label("It strikes").select_option("planner")
    expect(panel_of(notebook).locator("pre").last).to_contain_text("faults='hang:planner'")
    notebook.page.get_by_label("Fault").select_option("none")
    expect(notebook.page.get_by_label("It strikes")).to_have_count(0)


def test_an_error_stands_beside_its_control_until_it_is_mended(notebook: Opened, host: str, artefacts: Path) -> None:
    runs = notebook.page.get_by_label("Runs of each")
    wrong = panel_of(notebook).get_by_role("alert").filter(has_text="runs must be between 1 and 1000, not 0")
    runs.fill("0")
    runs.press("Enter")
    expect(wrong).to_be_visible()
    expect(runs).to_have_attribute("aria-invalid", "true")
    expect(runs).to_have_value("0")
    panel_of(notebook).screenshot(path=artefacts / f"{host}-error.png")
    assert obstacles(notebook, host) == {}
    runs.fill("2")
    runs.press("Enter")
    expect(wrong).to_have_count(0)
    expect(runs).to_have_attribute("aria-invalid", "false")


def test_a_running_sweep_is_stopped_and_what_is_done_stays(notebook: Opened) -> None:
    stop = notebook.page.get_by_role("button", name="Stop", exact=True)
    expect(panel_of(notebook).locator(stop)).to_be_disabled()
    field = notebook.page.get_by_label("Runs of each")
    field.fill("400")
    field.press("Enter")
    expect(panel_of(notebook).locator(".status")).to_contain_text(re.compile("[1-9][0-9]* of 800 runs"))
    panel_of(notebook).locator(stop).click()
    notebook.until_status("stopped, ")
    # The button and the figure may follow the status a moment later.
    expect(panel_of(notebook).locator(stop)).to_be_disabled()
    expect(notebook.page.locator(FIGURE)).to_be_visible()


def test_the_code_is_copied_with_a_button(notebook: Opened) -> None:
    notebook.page.get_by_role("button", name="Copy code").click()
    expect(panel_of(notebook).locator(".copy")).to_have_text("Copied")
    copied = notebook.page.evaluate("navigator.clipboard.readText()")
    assert "dl.compare(" in copied


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_narrow_pages_are_whole_and_a_theme_changes_the_figure(
    notebook: Opened, host: str, artefacts: Path, scheme: str
) -> None:
    notebook.page.emulate_media(color_scheme=scheme)
    expect(panel_of(notebook)).to_have_class("docmind-panel dark" if scheme == "dark" else "docmind-panel")
    ink = notebook.page.locator(f'{FIGURE} [style*="fill: var(--docmind-ink"]').first
    expect(ink).to_have_css("fill", "rgb(236, 236, 236)" if scheme == "dark" else "rgb(26, 26, 26)")
    for width in (1500, 360):
        notebook.page.set_viewport_size({"width": width, "height": 1900})
        notebook.page.wait_for_timeout(1500)
        panel_of(notebook).screenshot(path=artefacts / f"{host}-{scheme}-{width}.png")
        assert panel_of(notebook).evaluate(CLIPPED) == []
        assert obstacles(notebook, host) == {}
    notebook.page.set_viewport_size({"width": 1500, "height": 1900})


def test_nothing_was_asked_of_other_machines_and_the_console_has_no_errors(notebook: Opened) -> None:
    assert notebook.refused == []
    assert notebook.errors == []
