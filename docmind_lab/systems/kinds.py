"""The registry of systems: the kinds of workloads by name, and what each adds to the simulated services.

    kind = workload_kind("supervisor")             # one of WORKLOADS
    kind = workload_kind("my_package.mine:KIND")   # another's, wherever it can be imported from
    kind = workload_kind("own:my_app:graph")       # a graph that was not made for the lab
    workload = kind.build(Surroundings(addresses, Settings()))

Importing this module adds the roles of the scripted model, and the servers, of all systems (`services/registry.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import docmind_lab.systems.hops
import docmind_lab.systems.peers
import docmind_lab.systems.research
import docmind_lab.systems.staged  # noqa: F401 - each adds its part to the services
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.workload_kind import (
    OWN_PREFIX,
    PROGRAM_PREFIX,
    WorkloadKind,
    shown_name,
)
from docmind_lab.tables.frames import ELSEWHERE, ExtraTable, not_imported

# Imported when they are asked for: some need packages that only they use.
_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "supervisor": "docmind_lab.systems.docmind.supervisor_workload",
        "research": "docmind_lab.systems.research.research_workload",
        "staged": "docmind_lab.systems.staged.staged_workload",
        "peers": "docmind_lab.systems.peers.peers_workload",
        "hops": "docmind_lab.systems.hops.hops_workload",
    }
)

WORKLOADS: tuple[str, ...] = tuple(_MODULES)
"""The workloads that come with the lab."""

# Those that need an extra of their own name.
_EXTRAS = frozenset({"peers"})


def workload_kind(name: str) -> WorkloadKind:
    """Return the kind of this name: one of `WORKLOADS`, or "module:ATTRIBUTE". Raises: ConfigurationError."""
    if name in _MODULES:
        return _kind_in(name, _MODULES[name], "KIND")
    if name.startswith(OWN_PREFIX):
        # Function-level: it is made of this module's kinds.
        from docmind_lab.systems.own import own_kind  # noqa: PLC0415

        return own_kind(name)
    if name.startswith(PROGRAM_PREFIX):
        # Function-level, as above.
        from docmind_lab.systems.own.programs import program_kind  # noqa: PLC0415

        return program_kind(name)
    if not ELSEWHERE.fullmatch(name):
        known = ", ".join(WORKLOADS)
        raise ConfigurationError(
            f"unknown workload {name!r}; the workloads are {known}, or module:ATTRIBUTE for another"
        )
    module, _, attribute = name.partition(":")
    return _kind_in(name, module, attribute)


def extra_table(names: Iterable[str], table: str, trusted: Collection[str] | None = None) -> ExtraTable:
    """Return the extra table with that name from one of these workloads.

    names: workloads, as the manifest of a study names them. trusted: as in `not_imported`.
    Raises: ConfigurationError: none of the workloads has it. The message names the tables there are, and the workloads
    that were not imported.
    """
    # A graph of the user's own has no tables, so its module is not needed.
    names = [name for name in names if not name.startswith((OWN_PREFIX, PROGRAM_PREFIX))]
    unknown = not_imported(names, trusted)
    there = {each.name: each for name in names if name not in unknown for each in workload_kind(name).tables}
    if table not in there:
        known = f"the tables are {', '.join(there)}" if there else "its workloads have none of their own"
        if unknown:
            known = (
                f"{', '.join(unknown)} was not imported, since only the study's manifest names it: if you trust it, "
                f"load the study with kinds={list(unknown)!r}"
            )
        raise ConfigurationError(f"a study of these workloads has no table {table!r}; {known}")
    return there[table]


def systems_said(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the manifest's description of workloads, by their level in the tables, to read a study without them."""
    kinds = [(name, workload_kind(name)) for name in names]
    return {
        kind.name: {
            "kind": shown_name(name),
            "title": kind.title,
            "asked": kind.asked,
            "roles": list(kind.roles),
            "reads_settings": kind.reads_settings,
            "adapts": kind.adapts,
            **({"notes": list(kind.notes)} if kind.notes else {}),
        }
        for name, kind in kinds
    }


def _kind_in(name: str, module: str, attribute: str) -> WorkloadKind:
    try:
        kind = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise ConfigurationError(_missing(name, module, error)) from error
    except AttributeError as error:
        raise ConfigurationError(f"workload {name!r}: module {module} has no {attribute}") from error
    if not isinstance(kind, WorkloadKind):
        raise ConfigurationError(f"workload {name!r} is a {type(kind).__name__}, not a WorkloadKind")
    return kind


def _missing(name: str, module: str, error: ModuleNotFoundError) -> str:
    absent = error.name or ""
    if absent and (module == absent or module.startswith(f"{absent}.")):
        return f"workload {name!r}: no module {absent} can be imported; check the name and the Python path"
    remedy = f'pip install "docmind_lab[{name}]"' if name in _EXTRAS else "install it"
    return f"workload {name!r} needs the package {absent.partition('.')[0]}, which is not installed; {remedy}"
