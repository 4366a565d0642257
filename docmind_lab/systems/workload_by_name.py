"""The kinds of workloads by their names, of the lab (`system_catalogue.py`) and of others.

    kind = workload_kind("supervisor")             # one of WORKLOADS
    kind = workload_kind("my_package.mine:KIND")   # another's, wherever it can be imported from
    kind = workload_kind("own:my_app:graph")       # a graph that was not made for the lab
    workload = kind.build(Surroundings(addresses, Settings()))

Importing this module adds the roles of the scripted model, and the servers, of all systems (`services/hosts.py`).
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable
from typing import Any, Final

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.systems.base.workload_kind import (
    OWN_PREFIX,
    PROGRAM_PREFIX,
    WorkloadKind,
    shown_name,
)
from docmind_lab.systems.system_catalogue import LAB_SYSTEMS
from docmind_lab.tables.frames import ELSEWHERE, ExtraTable, not_imported

_SYSTEMS: Final = {system.kind: system for system in LAB_SYSTEMS.values()}
for _system in _SYSTEMS.values():
    # Each adds its part to the services. Its KIND is imported when it is asked for: some need packages of their own.
    importlib.import_module(_system.home.rpartition(".")[0])

WORKLOADS: tuple[str, ...] = tuple(_SYSTEMS)
"""The workloads that come with the lab."""


def workload_kind(name: str) -> WorkloadKind:
    """Return the kind of this name: one of `WORKLOADS`, or "module:ATTRIBUTE". Raises: ConfigurationError."""
    if name in _SYSTEMS:
        return _kind_in(name, _SYSTEMS[name].home, "KIND")
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
    remedy = f"pip install 'docmind_lab[lab,{_SYSTEMS[name].extra}]'" if name in _SYSTEMS else "install it"
    return f"workload {name!r} needs the package {absent.partition('.')[0]}, which is not installed; {remedy}"
