"""Policies for the time of model calls (policies.md 1, 2, 5)."""

from __future__ import annotations

import pytest

from docmind_lab.alternatives.alternative_texts import parse_alternatives
from docmind_lab.alternatives.base import options_json
from docmind_lab.core.alternative_catalogue import choice_to_paste, label_of
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.settings import Settings
from docmind_lab.core.time_policies import Anytime, Aware, Hedge, TimePolicies, WindDown


@pytest.mark.parametrize(
    ("text", "policies"),
    [
        ("", TimePolicies()),
        ("none", TimePolicies()),
        ("hedge:2s", TimePolicies(hedge=Hedge(2.0))),
        ("aware+wind_down:0.3", TimePolicies(aware=Aware(), wind_down=WindDown(0.3))),
        ("wind_down + aware", TimePolicies(aware=Aware(), wind_down=WindDown())),
        ("anytime+hedge:0.5s", TimePolicies(hedge=Hedge(0.5), anytime=Anytime())),
    ],
)
def test_a_text_names_policies_and_comes_back_from_them(text: str, policies: TimePolicies) -> None:
    assert TimePolicies.parse(text) == policies
    assert TimePolicies.parse(policies.text) == policies


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("hegde", "unknown policy 'hegde'; the policies are limits, hedge, "),
        ("hedge", "policy 'hedge': give seconds above 0, such as 2s"),
        ("hedge:-2s", "policy 'hedge:-2s': give seconds above 0, such as 2s"),
        ("aware+aware", "policies 'aware+aware': aware stands there twice"),
        ("aware:words", "policy 'aware:words': it takes no value; leave out 'words'"),
        ("anytime:3", "policy 'anytime:3': it takes no value; leave out '3'"),
        ("wind_down:25", "policy 'wind_down:25': give a number above 0 and below 1"),
    ],
)
def test_a_text_that_names_no_policy_is_refused_with_the_remedy(text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        TimePolicies.parse(text)
    assert complaint in str(refused.value)


def test_a_policy_is_part_of_the_name_of_an_alternative() -> None:
    plain, hedged, both = parse_alternatives("A,A+hedge:2s,A:per_read+hedge:1s+aware")
    assert options_json(plain) == "{}"
    assert options_json(hedged) == '{"policies": "hedge:2s"}'
    assert options_json(both) == '{"cap": "per_read", "policies": "hedge:1s+aware"}'
    assert label_of("cooperative", options_json(hedged)) == "A  cooperative (hedge:2s)"
    (renamed,) = parse_alternatives("A+hedge:2s", retries=3)
    assert options_json(renamed) == '{"policies": "hedge:2s", "retries": 3}'


def test_a_policy_asks_for_an_alternative_that_propagates() -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_alternatives("B+hedge:2s")
    assert "hard_timeout with policies hedge:2s: its calls know of no deadline" in str(refused.value)
    (propagating,) = parse_alternatives("B:propagate+hedge:2s")
    assert propagating.propagates


def test_what_a_study_chose_is_pasted_with_its_policies() -> None:
    options = '{"policies": "hedge:2s"}'
    assert choice_to_paste("settings", "cooperative", 20.0, options).split() == [
        "DOCMIND_AGENTS__DECISION_TIMEOUT=20",
        "DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION=true",
        "DOCMIND_AGENTS__TIME_POLICIES=hedge:2s",
    ]
    assert Settings(agents={"time_policies": "hedge:2s"}).agents.time_policies == "hedge:2s"  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="unknown policy"):
        Settings(agents={"time_policies": "faster"})  # type: ignore[arg-type]
