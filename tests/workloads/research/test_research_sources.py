"""What the sources hold, how slow they are, and what the scripted model makes of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from qdrant_client import models

from docmind_lab.core.errors import ConfigurationError
from docmind_lab.services.plan import ServiceRequest
from docmind_lab.services.scripted_model import Conversation, reply_to
from docmind_lab.services.vector_service import VectorService
from docmind_lab.statistics.latency.profile import LatencyProfile
from docmind_lab.systems.base.documents import handbook
from docmind_lab.systems.base.questions import load_questions
from docmind_lab.systems.research.prompts import PROMPTS
from docmind_lab.systems.research.research_script import ROLES
from docmind_lab.systems.research.sources import load_sources, passages_of
from docmind_lab.systems.research.tasks import as_task, load_tasks

# ---- what they hold


def test_every_gold_topic_of_every_task_is_in_some_source():
    chunks = handbook().chunks
    held = {passage.topic for spec in load_sources() for passage in passages_of(spec, chunks)}
    for task in load_tasks():
        assert set(task.gold_topics) <= held, task.id


def test_sources_differ_in_pages_noise_and_what_their_results_can_be_told_by():
    held = {spec.name: passages_of(spec, handbook().chunks) for spec in load_sources()}
    topics = {name: {p.topic for p in passages if p.topic} for name, passages in held.items()}
    assert topics["manual"] - topics["archive"]
    assert topics["archive"] - topics["manual"]
    assert topics["archive"] & topics["manual"]
    noise = {name: sum(not p.topic for p in passages) / len(passages) for name, passages in held.items()}
    assert (noise["manual"], noise["archive"]) == (0, 0)
    assert noise["forum"] == pytest.approx(0.5, abs=0.01)
    assert not any(p.id or p.url for p in held["forum"])
    assert all(p.url and not p.id for p in held["archive"])


def test_what_a_source_holds_is_drawn_by_key():
    forum = load_sources()[2]
    chunks = handbook().chunks
    assert passages_of(forum, chunks) == passages_of(forum, tuple(chunks))
    assert passages_of(replace(forum, name="other"), chunks) != passages_of(forum, chunks)


def test_any_question_is_a_task_of_one_hypothesis():
    task, question = load_tasks()[0], load_questions()[0]
    made = as_task(question)
    assert as_task(task) is task
    assert ([one.text for one in made.hypotheses], made.gold_facts) == ([question.text], question.gold_facts)


def test_a_corpus_without_tasks_is_refused_by_name():
    with pytest.raises(ConfigurationError, match="handbook"):
        load_tasks("elsewhere")


# ---- their pace


def searched(service: VectorService, name: str) -> float:
    body = json.dumps({"query": {"indices": [1], "values": [1.0]}, "using": "bm25"}).encode()
    return service.plan(ServiceRequest("POST", f"/collections/{name}/points/query", body=body)).duration_s


def created(service: VectorService, name: str, metadata: dict[str, object] | None) -> int:
    request = models.CreateCollection(
        vectors={}, sparse_vectors={"bm25": models.SparseVectorParams()}, metadata=metadata
    )
    plan = service.plan(ServiceRequest("PUT", f"/collections/{name}", body=request.model_dump_json().encode()))
    return plan.steps[0].status  # type: ignore[union-attr]


def test_a_collection_takes_as_many_times_as_long_as_its_pace_says():
    service = VectorService(LatencyProfile.named("typical"))
    assert (created(service, "plain", None), created(service, "slow", {"pace": 10})) == (200, 200)
    assert searched(service, "slow") == pytest.approx(10 * searched(service, "plain"))
    again = replace(service, profile=LatencyProfile.named("typical/10"))
    assert searched(again, "slow") == pytest.approx(searched(service, "plain"))


@pytest.mark.parametrize("pace", [0, -1, "slow", True])
def test_a_pace_that_cannot_be_is_refused(pace):
    assert created(VectorService(LatencyProfile.named("typical")), "odd", {"pace": pace}) == 400


# ---- the scripted model


def said(role: str, **given: object) -> dict[str, object]:
    messages = ({"role": "system", "content": PROMPTS[role]}, {"role": "user", "content": json.dumps(given)})
    return json.loads(reply_to(Conversation(messages)).text)


def test_each_prompt_is_told_by_one_phrase_that_stands_in_no_other():
    for prompt in PROMPTS.values():
        assert sum(phrase in prompt for phrase in ROLES) == 1


def test_a_writer_without_anything_new_has_no_query():
    attempts = [{"query": "alpha beta", "new": 0}] * 2
    assert said("query_writer", hypothesis="alpha beta", history=attempts, excerpts=[])["query"] == ""


@pytest.mark.parametrize(
    ("new", "error", "decision"),
    [([5], "", "CONTINUE"), ([5, 0], "", "CONTINUE"), ([5, 0, 0], "", "SATURATED"), ([5, 0, 0], "X", "CONTINUE")],
)
def test_the_judge_wants_two_dry_queries_in_a_row(new, error, decision):
    history = [{"query": "q", "new": count, "error": ""} for count in new]
    history[-1]["error"] = error
    assert said("judge", hypothesis="h", history=history, kept=sum(new))["decision"] == decision
