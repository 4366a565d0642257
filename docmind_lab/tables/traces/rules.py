"""What each alternative does to a run when its deadline falls, apart from the agent's own code.

rule_of("A").cuts_calls        # True: the calls under way are cut, and none begins after them
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from docmind_lab.core.alternative_catalogue import CATALOGUE, label_of, level_and_variant, options_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.lateness import STEP_SLACK_S

Work = Literal["goes_on", "cut", "to_end_of_step", "to_end_of_outer_step"]
"""What becomes of the work at the deadline."""

Caller = Literal["waits", "leaves"]
"""Whether the caller waits for the work, or is back at the deadline whatever becomes of it."""


@dataclass(frozen=True)
class Rule:
    """What one alternative does at the deadline.

    work: what becomes of the work: it goes on, its calls are cut, or it ends with the step under way. caller: whether
    the caller waits for that. cut_after_s: seconds from the deadline to the cut. returns_result: whether a run that
    stops early returns what there is. tells_late: whether a run that ends too late is told to have timed out.
    propagates: whether the calls know the deadline: retries are then within the budget.
    """

    work: Work
    caller: Caller = "waits"
    cut_after_s: float = 0.0
    returns_result: bool = True
    tells_late: bool = False
    propagates: bool = False

    @property
    def cuts_calls(self) -> bool:
        """Whether calls under way are cut."""
        return self.work == "cut"


RULES: Final[Mapping[str, Rule]] = {
    "runs_on": Rule("goes_on"),
    "tells_late": Rule("goes_on", tells_late=True),
    "cut": Rule("cut"),
    "propagates": Rule("cut", propagates=True),
    "cut_late": Rule("cut", cut_after_s=STEP_SLACK_S),
    "ends_at_step": Rule("to_end_of_step"),
    "ends_at_outer_step": Rule("to_end_of_outer_step"),
    "leaves": Rule("goes_on", "leaves", returns_result=False),
    "leaves_with_result": Rule("goes_on", "leaves"),
    "leaves_and_cuts": Rule("cut", "leaves", returns_result=False, propagates=True),
    "leaves_and_ends_at_step": Rule("to_end_of_step", "leaves", returns_result=False),
    # The exit of the pool waits for the thread, and the caller is told of a timeout then.
    "waits_and_leaves": Rule("goes_on", returns_result=False, tells_late=True),
}
"""The rules by the names that the catalogue of alternatives has."""


CONTROLS: Final = tuple(name for name, entry in CATALOGUE.items() if entry.is_control and entry.is_offered)
"""The alternatives that enforce nothing: their runs show all that a run does."""


@dataclass(frozen=True)
class NamedRule:
    """The rule of an alternative, with the names that tables have."""

    alternative: str
    options: str
    rule: Rule

    @property
    def label(self) -> str:
        """Its label in tables and figures."""
        return label_of(self.alternative, self.options)


RULES_OF: Final[Mapping[tuple[str, str], NamedRule]] = {
    (level, options_of(level, variant)): NamedRule(level, options_of(level, variant), RULES[rule])
    for level, entry in CATALOGUE.items()
    for variant, rule in entry.on_traces.items()
}
"""The rules of all that a trace can say of, by the level and the options of tables."""


def rule_of(name: str) -> NamedRule:
    """Return the rule of an alternative or variant, such as "A", "B:drain" or "stop_flag".

    Raises: ConfigurationError (there is none of that name, or it changes the path of a run, so that a trace cannot say
    what it would do).
    """
    level, variant = level_and_variant(name.partition("+")[0])
    # What follows a plus has the agent spend its time in another way.
    rule = None if "+" in name else RULES_OF.get((level, options_of(level, variant)))
    if rule is None:
        raise ConfigurationError(
            f"{name} changes the path of a run, so a trace cannot say what it would have done: measure it in virtual "
            f"time (docmind-lab compare --alternatives {name})"
        )
    return rule


def rules_of(names: str | Sequence[str] | None) -> tuple[NamedRule, ...]:
    """Return the rules of several alternatives.

    None means the control and all that a trace can say of. Raises: ConfigurationError as `rule_of`.
    """
    if names is None:
        names = [name for name, entry in CATALOGUE.items() if entry.is_offered and "" in entry.on_traces]
    elif isinstance(names, str):
        names = [name.strip() for name in names.split(",") if name.strip()]
    if not names:
        raise ConfigurationError("name at least one alternative, such as A,B,C")
    return tuple(rule_of(each) for each in names)
