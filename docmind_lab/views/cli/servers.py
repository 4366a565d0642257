"""`docmind-lab lab` and `docmind-lab serve`: JupyterLab on the notebooks, and the simulated services."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.options import Given, takes

_FIRST = "00_start_here.ipynb"


def lab(
    notebooks: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="Folder to open; that of the project's notebooks when left out.")
    ] = "",
    port: Annotated[int | None, typer.Option(help="Port on loopback; 8888 or the next free one when left out.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser at the address.")] = True,
) -> None:
    """Open JupyterLab on the notebooks, on loopback, behind the token that it prints.

    They are opened where they are: nothing is copied, and your changes stay. Ends with Ctrl-C.
    """
    try:
        from jupyterlab.labapp import LabApp  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise ConfigurationError("JupyterLab is not installed; install docmind_lab[notebooks]") from error
    words = [str(_folder(notebooks)), "--ServerApp.ip=127.0.0.1", "--ServerApp.allow_remote_access=False"]
    if port is not None:
        words += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if not browser:
        words.append("--no-browser")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        # Jupyter refuses root, which a container usually is; the server listens on loopback, behind its token.
        words.append("--ServerApp.allow_root=True")
    LabApp.launch_instance(words)


def _folder(named: str) -> Path:
    """Return the folder to open. Raises: ConfigurationError that says where to get the notebooks."""
    if named:
        folder = Path(named)
        if not folder.is_dir():
            raise ConfigurationError(f"{folder} is not a folder; name one with notebooks")
        return folder.resolve()
    # Under where one stands first: a copy that somebody works in. Then beside the package, as in a checkout.
    for folder in (Path("notebooks"), Path(), Path(__file__).parents[3] / "notebooks"):
        if (folder / _FIRST).is_file():
            return folder.resolve()
    raise ConfigurationError(
        f"the notebooks are not part of an installed package, and {Path.cwd()} has none; take the folder notebooks/ "
        "from the project's repository or source archive, and run docmind-lab lab FOLDER"
    )


@takes("latencies", "faults", "server")
def serve(
    options: Given,
    port: Annotated[int, typer.Option(help="Port on loopback; 0 for a free one.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed for clients that do not say which run they belong to.")] = 0,
) -> None:
    """Serve the simulated model and vector store on loopback; print their addresses as one JSON line when ready."""
    import docmind_lab.systems.kinds  # noqa: F401 - it adds the systems' roles and servers to the services
    from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
    from docmind_lab.services.faults import Fault
    from docmind_lab.services.server import ServiceOptions
    from docmind_lab.services.server import serve as serve_forever
    from docmind_lab.statistics.latency.profile import latency_profile

    services = ServiceOptions(
        profile=latency_profile(options.get("latencies", ())),
        faults=tuple(Fault.parse(text) for text in options.get("faults", ())),
        seed=seed,
        behaviour=ServerBehaviour.named(options.get("server", STOPS.name)),
    )
    serve_forever(services, port)
