"""JupyterLab or marimo on a folder of its own, in a headless browser that reaches nothing but this machine."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# JupyterLab takes 3 s to start on two idle cores, and a first run as long; this is a machine that does much else.
PATIENCE_S = 240.0
_TOKEN = "of-the-tests"
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """Where a Chromium is, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@dataclass
class Opened:
    """A notebook in a browser. page: of Playwright. errors: of the console. refused: requests that were not for us."""

    page: Any
    errors: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def until(self, script: str, argument: object = None) -> None:
        """Return once a JavaScript function of the argument gives something true."""
        self.page.wait_for_function(script, arg=argument, timeout=PATIENCE_S * 1000)

    def until_status(self, text: str) -> None:
        """Return once the panel says this."""
        self.page.locator(".docmind-panel .status", has_text=text).wait_for(timeout=PATIENCE_S * 1000)


@contextlib.contextmanager
def opened(folder: Path, notebook: str) -> Iterator[Opened]:
    """The notebook of this name in JupyterLab, its kernel idle; one of marimo, a .py file, in marimo, where it runs."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_S * 1000)
    serve = _marimo if notebook.endswith(".py") else _jupyterlab
    with serve(folder, notebook) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(BROWSER_OPTIONS))
        context = browser.new_context(viewport={"width": 1500, "height": 1900})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        found = Opened(page)
        page.on("console", lambda message: found.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: found.errors.append(str(error)))

        def refuse(route: Any) -> None:
            found.refused.append(route.request.url)
            route.abort()

        context.route(lambda url: not _is_ours(url), refuse)
        page.goto(address, timeout=PATIENCE_S * 1000)
        if serve is _jupyterlab:
            page.wait_for_selector(".jp-Notebook .cm-content", timeout=PATIENCE_S * 1000)
            page.wait_for_selector("text=| Idle", timeout=PATIENCE_S * 1000)
            # Without the list of files, which leaves a narrow notebook no room.
            page.keyboard.press("Control+b")
        yield found
        browser.close()


def _is_ours(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.hostname == "127.0.0.1"


@contextlib.contextmanager
def _jupyterlab(folder: Path, notebook: str) -> Iterator[str]:
    """The address of a notebook in a JupyterLab on the folder; nothing of the user's configuration is seen."""
    jupyter = folder / ".home" / ".jupyter"
    settings = jupyter / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"adaptive-theme": True}))
    # As root, as in a container, it would not start; its list of extensions would come from a registry.
    config = {"ServerApp": {"allow_root": True}, "LabApp": {"extension_manager": "readonly"}}
    (jupyter / "jupyter_server_config.json").write_text(json.dumps(config))
    port = _free_port()
    program = f"from docmind_lab.views.cli.servers import lab; lab({str(folder)!r}, port={port}, browser=False)"
    here = f"http://127.0.0.1:{port}"
    with _server(["-c", program], folder, f"{here}/api/status?token={_TOKEN}"):
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(f"{here}/api/status", timeout=5).close()
            raise AssertionError("a server without a token")
        yield f"{here}/lab/tree/{notebook}?token={_TOKEN}"


@contextlib.contextmanager
def _marimo(folder: Path, notebook: str) -> Iterator[str]:
    """The address of a notebook in marimo's editor."""
    (folder / "pyproject.toml").write_text('[tool.marimo]\ndisplay.theme = "system"\nruntime.auto_instantiate = true\n')
    here = f"http://127.0.0.1:{(port := _free_port())}"
    options = ["--headless", "--no-token", "--skip-update-check", "--port", str(port), "--host", "127.0.0.1"]
    with _server(["-m", "marimo", "-q", "edit", notebook, *options], folder, f"{here}/health"):
        yield here


@contextlib.contextmanager
def _server(arguments: list[str], folder: Path, address: str) -> Iterator[None]:
    """A program in the folder, with a home of its own, once it answers at the address; its log is .home/log."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON", "XDG"))
    }
    environment |= {"HOME": str(folder / ".home"), "JUPYTER_TOKEN": _TOKEN}
    (folder / ".home").mkdir(exist_ok=True)
    with open(folder / ".home" / "log", "w") as log:
        process = subprocess.Popen([sys.executable, *arguments], env=environment, cwd=folder, stdout=log, stderr=log)
        try:
            limit_at = time.monotonic() + PATIENCE_S
            while True:
                assert time.monotonic() < limit_at, "it did not start; its log is beside the notebook in .home/log"
                assert process.poll() is None, "it ended; its log is beside the notebook in .home/log"
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(address, timeout=5).close()
                    break
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_notebook(path: Path, *sources: str) -> None:
    """A notebook with these code cells, of marimo where it is a .py file."""
    from nbformat import v4, write

    if path.suffix == ".py":
        cells = "".join(f"@app.cell\ndef _():\n    {source}\n    return\n\n\n" for source in sources)
        path.write_text(f"import marimo\n\napp = marimo.App()\n\n\n{cells}")
        return

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [v4.new_code_cell(text) for text in sources]
    write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
