"""JupyterLab on a folder of its own, opened in a headless browser that reaches nothing but this machine."""

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

# JupyterLab takes 3 s to start on two idle cores; ten times that is a machine that does something else.
PATIENCE_S = 90.0
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
        self.until("text => document.querySelector('.docmind-status')?.innerText.includes(text)", text)


@contextlib.contextmanager
def opened(folder: Path, notebook: str) -> Iterator[Opened]:
    """The notebook of this name, open in JupyterLab, its kernel idle."""
    from playwright.sync_api import sync_playwright

    with _server(folder) as address, sync_playwright() as playwright:
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
        host, _, token = address.partition("?")
        page.goto(f"{host}lab/tree/{notebook}?{token}", timeout=PATIENCE_S * 1000)
        page.wait_for_selector(".jp-Notebook .cm-content", timeout=PATIENCE_S * 1000)
        page.wait_for_selector("text=| Idle", timeout=PATIENCE_S * 1000)
        yield found
        browser.close()


def _is_ours(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.hostname == "127.0.0.1"


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[str]:
    """The address of a JupyterLab on the folder, with its token; nothing of the user's configuration is seen."""
    jupyter = folder / ".home" / ".jupyter"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON", "XDG"))
    }
    environment["HOME"] = str(jupyter.parent)
    settings = jupyter / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (settings / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    # As root, as in a container, it would not start; its list of extensions would come from a registry.
    config = {"ServerApp": {"allow_root": True}, "LabApp": {"extension_manager": "readonly"}}
    (jupyter / "jupyter_server_config.json").write_text(json.dumps(config))
    program = f"from docmind_lab.views.cli.servers import lab; lab({str(folder)!r}, port={_free_port()}, browser=False)"
    with open(jupyter / "log", "w") as log:
        process = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=log, stderr=log)
        try:
            yield _address(jupyter.parent / ".local" / "share" / "jupyter" / "runtime", process)
        finally:
            process.terminate()
            process.wait(timeout=30)


def _address(runtime: Path, process: subprocess.Popen[bytes]) -> str:
    """The address that the server has written down, with its token, once it answers."""
    limit_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < limit_at and process.poll() is None:
        for written in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(urllib.error.URLError, OSError, ValueError):
                server = json.loads(written.read_text())
                assert server["token"], "a server without a token"
                urllib.request.urlopen(f"{server['url']}api/status?token={server['token']}", timeout=5).close()
                return f"{server['url']}?token={server['token']}"
        time.sleep(0.1)
    raise AssertionError("JupyterLab did not start; its log is beside the notebook in .home/.jupyter/log")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_notebook(path: Path, *sources: str) -> None:
    """A notebook with these code cells."""
    from nbformat import v4, write

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [v4.new_code_cell(text) for text in sources]
    write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
