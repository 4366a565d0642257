"""The catalogue of alternatives: name, letter, colour, price and variants of each.

Labels, plots, sentences, advice and the lint read it.

    CATALOGUE["hard_timeout"].letter             # "B"
    label_of("hard_timeout", '{"naive": true}')  # "B  hard timeout (naive)"

A new alternative is a row here, a file in `alternatives` and its test. A package of its own adds its row with
`CATALOGUE["mine"] = Entry(...)`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from docmind_lab.core.errors import ConfigurationError


@dataclass(frozen=True)
class Entry:
    """One alternative's row of the catalogue: its names, colour, price and variants.

    Args:
        home: Location of its class, as "module:Class".
        letter: Its short name in tables and figures; empty if it has none.
        colour: Its colour in every figure, as "#RRGGBB".
        price: What must change in code that adopts it; empty for one that is not meant to be adopted.
        setting: The environment variable that it needs beside the decision timeout; empty for none.
        why_work_goes_on: Why work goes on after the deadline; empty where it is meant to end with it.
        variants: Variant → its options that are not at their default, as `alternative_options` has them.
        mistakes: Variants that are common mistakes, measured but never recommended.
        on_traces: Variant → what it does to a run at the deadline, a name of `tables.traces.rules`; "" for the
            alternative itself. One that changes the path of a run is left out: a trace cannot say what it would do.
        is_control: Whether it enforces nothing. Measured, never recommended.
        is_offered: Whether it is among all alternatives when none is named.
        cancels: Whether it cancels the tasks of the nodes that are at work at the deadline.
    """

    home: str
    letter: str = ""
    colour: str = "#7A7A7A"
    price: str = ""
    setting: str = ""
    why_work_goes_on: str = ""
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    mistakes: tuple[str, ...] = ()
    on_traces: Mapping[str, str] = field(default_factory=dict)
    is_control: bool = False
    is_offered: bool = True
    cancels: bool = False


POLICIES: Final = "policies"
"""The option that names the time policies of an alternative's calls, in `alternative_options`."""

_ALL_ASYNC: Final = "every node, tool and client must be async"
_PROPAGATE: Final = {"propagate": {"propagate": True}}

# Colours: Okabe and Ito, Color Universal Design (2008). Their yellow is left out: it cannot be seen on white.
CATALOGUE: Final[dict[str, Entry]] = {
    "unguarded": Entry(
        home="docmind_lab.alternatives.controls:Unguarded",
        letter="control",
        colour="#000000",
        why_work_goes_on="nobody enforces anything",
        is_control=True,
        on_traces={"": "runs_on"},
    ),
    "cooperative": Entry(
        home="docmind_lab.alternatives.cooperative:Cooperative",
        letter="A",
        colour="#0072B2",
        price="every role's state and every client must carry the deadline",
        setting="DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true",
        variants={
            "per_read": {"cap": "per_read"},
            "unpropagated": {"propagate": False},
        },
        mistakes=("per_read",),
        on_traces={"": "propagates", "unpropagated": "ends_at_outer_step"},
    ),
    "hard_timeout": Entry(
        home="docmind_lab.alternatives.hard_timeout:HardTimeout",
        letter="B",
        colour="#D55E00",
        price="nothing in the graph changes",
        why_work_goes_on="the graph does not know that its caller has left",
        variants={
            "drain": {"drain_on_timeout": True},
            "naive": {"naive": True},
            **_PROPAGATE,
            "streamed": {"streamed": True},
        },
        mistakes=("naive",),
        on_traces={
            "": "leaves",
            "drain": "leaves_and_ends_at_step",
            "naive": "waits_and_leaves",
            "propagate": "leaves_and_cuts",
            "streamed": "leaves_with_result",
        },
    ),
    "async_cancellation": Entry(
        home="docmind_lab.alternatives.async_cancellation:AsyncCancellation",
        letter="C",
        colour="#009E73",
        price=_ALL_ASYNC,
        variants=_PROPAGATE,
        cancels=True,
        on_traces={"": "cut", "propagate": "propagates"},
    ),
    "stop_flag": Entry(
        home="docmind_lab.alternatives.stop_flag:StopFlag",
        letter="D",
        colour="#E69F00",
        price="one argument to the graph",
        why_work_goes_on="the flag is looked at between steps only",
        variants=_PROPAGATE,
        on_traces={"": "ends_at_step", "propagate": "propagates"},
    ),
    "hybrid": Entry(
        home="docmind_lab.alternatives.hybrid:Hybrid",
        letter="E",
        colour="#CC79A7",
        price="what A asks for and what C asks for",
        setting="DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true",
        variants={"unpropagated": {"propagate": False}},
        cancels=True,
        on_traces={"": "propagates", "unpropagated": "cut_late"},
    ),
    "native": Entry(
        home="docmind_lab.alternatives.native:Native",
        letter="F",
        colour="#56B4E9",
        price=_ALL_ASYNC,
        variants={"per_step": {"per_step": True}, **_PROPAGATE},
        mistakes=("per_step",),
        cancels=True,
        on_traces={"": "cut", "propagate": "propagates"},
    ),
    "fake_timeout": Entry(
        home="docmind_lab.alternatives.controls:FakeTimeout",
        is_control=True,
        is_offered=False,
        on_traces={"": "tells_late"},
    ),
}
"""Alternative → its row of the catalogue, in the order of every figure."""


def default_alternatives() -> tuple[str, ...]:
    """Return the names of the alternatives that are compared by default, in order."""
    return tuple(name for name, entry in CATALOGUE.items() if entry.is_offered)


def level_and_variant(text: str) -> tuple[str, str]:
    """Split a name such as "B:naive", "hard_timeout" or "a" into alternative and variant ("" for none).

    Raises: ConfigurationError for one that is unknown. It names the nearest and the known ones.
    """
    base, _, variant = text.partition(":")
    by_letter = {CATALOGUE[name].letter.lower(): name for name in default_alternatives()}
    name = by_letter.get(base.lower(), base.lower())
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name, default_alternatives(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        names = ", ".join(f"{name} ({CATALOGUE[name].letter})" for name in default_alternatives())
        raise ConfigurationError(f"unknown alternative {text!r}; {hint}the alternatives are {names}")
    if variant and variant not in CATALOGUE[name].variants:
        names = ", ".join(f"{each}:{option}" for each, entry in CATALOGUE.items() for option in entry.variants)
        raise ConfigurationError(f"unknown variant {text!r}; the variants are {names}")
    return name, variant


def options_of(name: str, variant: str = "") -> str:
    """Return the options of a variant as the column `alternative_options` has them, a JSON object."""
    return json.dumps(dict(CATALOGUE[name].variants[variant]) if variant else {}, sort_keys=True)


def is_mistake(alternative: str, options: str) -> bool:
    """Whether these options make the alternative a documented mistake or a control, never recommended."""
    entry = CATALOGUE.get(alternative)
    chosen = json.loads(options)
    mistakes = (each.variants[variant] for each in CATALOGUE.values() for variant in each.mistakes)
    return (entry is not None and entry.is_control) or any(
        chosen.get(option) == value for mistake in mistakes for option, value in mistake.items()
    )


def settings_to_paste(alternative: str, decision_timeout_s: float, options: str = "{}") -> str:
    """Return the environment variables that choose an alternative, its policies and a timeout, on one line."""
    timeout = f"DOCMIND_AGENTS__DECISION_TIMEOUT={decision_timeout_s:g}"
    entry, policies = CATALOGUE.get(alternative), json.loads(options).get(POLICIES)
    setting = "" if entry is None else entry.setting
    named = f"DOCMIND_AGENTS__TIME_POLICIES={policies}" if policies else ""
    return " ".join(part for part in (timeout, setting, named) if part)


Chooses = Literal["settings", "enforce", "nothing"]
"""By what a system in production is given an alternative and its timeout: settings, or a call of `enforce`."""


def choice_to_paste(by: Chooses, alternative: str, decision_timeout_s: float, options: str = "{}") -> str:
    """Return the line that gives a system its alternative and timeout; empty where nothing does."""
    if by == "settings":
        return settings_to_paste(alternative, decision_timeout_s, options)
    entry = CATALOGUE.get(alternative)
    if by == "enforce" and entry is not None and entry.letter:
        return f'docmind_lab.enforce(graph, {decision_timeout_s:g}, "{entry.letter}")'
    return ""


def with_label(line: str) -> str:
    """Return a line of `choice_to_paste` with the words before it."""
    return f"{'In production' if '(' in line else 'Settings'}: {line}"


def label_of(alternative: str, options: str = "{}") -> str:
    """Return the label of an alternative: "A  cooperative", "control  unguarded", "B  hard timeout (naive)".

    options: the column `alternative_options`, a JSON object. One that is not in the catalogue goes by its own name.
    """
    words = alternative.replace("_", " ")
    entry = CATALOGUE.get(alternative)
    label = f"{entry.letter}  {words}" if entry is not None and entry.letter else words
    named = [_option(name, value) for name, value in json.loads(options).items()]
    return f"{label} ({', '.join(named)})" if named else label


def _option(name: str, value: object) -> str:
    if name == POLICIES:
        return str(value).replace("_", " ").replace("+", ", ")
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name}={value}"


def letter_of(alternative: str) -> str:
    """Return the letter of an alternative, or its own name if it has none."""
    entry = CATALOGUE.get(alternative)
    return entry.letter if entry is not None and entry.letter else alternative


def rank_of(alternative: str) -> int:
    """Return the position of an alternative in every figure; those not in the catalogue come last."""
    return list(CATALOGUE).index(alternative) if alternative in CATALOGUE else len(CATALOGUE)


def order_of(alternative: str, options: str = "{}") -> tuple[int, bool, str]:
    """Return a key that sorts alternatives as in the catalogue, each before its variants."""
    return rank_of(alternative), options != "{}", options
