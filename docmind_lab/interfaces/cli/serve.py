"""`docmind-lab serve`: the simulated services, for whoever wants to talk to them."""

from __future__ import annotations

from typing import Annotated

import typer

from docmind_lab.interfaces.cli import options


def serve(
    port: Annotated[int, typer.Option(help="Port on loopback; 0 for a free one.")] = 0,
    profile: options.ServiceProfile = "typical",
    fault: options.Faults = None,
    seed: Annotated[int, typer.Option(help="Seed for clients that do not say which run they belong to.")] = 0,
    stops_on_disconnect: options.StopsOnDisconnect = True,
) -> None:
    """Serve the simulated model and vector store on loopback; print their addresses as one JSON line when ready."""
    # Function-level: importing the services takes seconds, and --help must not.
    from docmind_lab.analysis.latency.profile import LatencyProfile  # noqa: PLC0415
    from docmind_lab.services.faults import Fault  # noqa: PLC0415
    from docmind_lab.services.server import ServiceOptions  # noqa: PLC0415
    from docmind_lab.services.server import serve as serve_forever  # noqa: PLC0415

    options = ServiceOptions(
        profile=LatencyProfile.named(profile),
        faults=tuple(Fault.parse(text) for text in fault or ()),
        stops_on_disconnect=stops_on_disconnect,
        seed=seed,
    )
    serve_forever(options, port)
