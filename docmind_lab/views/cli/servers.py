"""`docmind-lab init`, `lab` and `serve`: a folder to start from, JupyterLab in it, and the simulated services."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Final

import typer

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.views.cli.fields_as_options import Given, takes

_FIRST = "00_start_here.ipynb"
STARTER: Final = (_FIRST, "my_agent.py", "inputs.jsonl", "endpoints.toml")
"""The files of a folder to start from: a notebook, a graph, what it is asked, and what its services answer."""

# In a checkout, and in an installed package, where the wheel has a copy of them.
_CHECKOUT: Final = Path(__file__).parents[3] / "notebooks"
_INSTALLED: Final = Path(__file__).parents[2] / "core" / "data" / "starter"


def init(
    folder: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="Where they go; it is made if need be. Here when left out.")
    ] = ".",
) -> None:
    """Copy a starter notebook with a graph, its inputs and the answers of its services. Nothing is overwritten."""
    target = Path(folder)
    if there := [name for name in STARTER if (target / name).exists()]:
        raise ConfigurationError(f"{target / there[0]} is there and stays as it is; name another folder")
    source = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    target.mkdir(parents=True, exist_ok=True)
    for name in STARTER:
        shutil.copyfile(source / name, target / name)
    typer.echo(
        f"In {target}: {', '.join(STARTER)}.\n"
        f"Next: docmind-lab lab {target}, and put your graph in the place of my_agent.py. Or in a terminal, there:\n"
        "docmind-lab recommend --graph my_agent.py:graph --inputs inputs.jsonl --endpoints endpoints.toml"
    )


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
    for folder in (Path("notebooks"), Path(), _CHECKOUT):
        if (folder / _FIRST).is_file():
            return folder.resolve()
    raise ConfigurationError(
        f"{Path.cwd()} has no notebooks; docmind-lab init FOLDER copies the first one. The others are in the folder "
        "notebooks/ of the project's repository and source archive"
    )


@takes("latencies", "faults", "server")
def serve(
    options: Given,
    port: Annotated[int, typer.Option(help="Port on loopback; 0 for a free one.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed for clients that do not say which run they belong to.")] = 0,
) -> None:
    """Serve the simulated model and vector store on loopback; print their addresses as one JSON line when ready."""
    import docmind_lab.systems.workload_by_name  # noqa: F401 - it adds the systems' roles and servers to the services
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
