"""The rungs of the ladder that ask no model, and the final step after any rung.

    suggested   calls that the agent wrote into its last message, because it did not call its tools
    generated   calls made up from what the agent said and from the text
    forced      evidence that the chunk exists, and one entity, so that no chunk leaves nothing behind
    finalize    evidence linked to what was written, relations tried once more, and the outcome

A rung hands over to the next one if no write of it is confirmed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from docmind_lab.network.recorder import note_event
from docmind_lab.systems.staged.graph_store import Written, is_confirmed, key_of
from docmind_lab.systems.staged.parsing import ToolCall, parse_text
from docmind_lab.systems.staged.stage_calls import MOST_CHARACTERS_OF_A_NAME, ChunkEvidence, Entity, Relation
from docmind_lab.systems.staged.staged_events import note_stage_end, note_stage_start
from docmind_lab.systems.staged.staged_ledger import Desk, StageLedger, attempt
from docmind_lab.systems.staged.staged_state import LadderFailed, StagedOptions, desk_of, is_blank, last_reply, text_of

STAGE = "finalize"

_CODE = r"`(?P<code>[^`\n]{2,60})`"
_LINK = r"\[(?P<link>[^\]\n]{2,60})\]\([^)\s]*\)"
# ChatOpenAI, deadline_ts, Retry-After: two capitals, an underscore, or capitals joined by a hyphen.
_TERM = r"(?P<term>\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+\b|\b[A-Z][a-z]+(?:-[A-Z][a-z]+)+\b)"
_NAME = r"(?P<name>(?<=[a-z,;] )[A-Z][\w'’]+(?: [A-Z][\w'’]+)*|\b[A-Z][\w'’]+(?: [A-Z][\w'’]+)+)"
_DEFINED = r"(?:(?<=[.!?\n] )|(?<=\n)|^)(?:An?|The) (?P<defined>[a-z][\w-]+(?: [a-z][\w-]+)?) (?:is|are|has|bounds) "
_FOUND = re.compile("|".join((_CODE, _LINK, _TERM, _NAME, _DEFINED)))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"“])|\n\s*\n")
_NO_NAMES = frozenset({"i", "the", "this", "that", "it"})


def names_in(text: str, most: int | None = None) -> list[str]:
    """Return the names in a text, each once, in order."""
    names: dict[str, str] = {}
    for match in _FOUND.finditer(text):
        name = " ".join((match.group(match.lastgroup or 0)).split()).strip("'’")
        if 2 <= len(name) <= MOST_CHARACTERS_OF_A_NAME and key_of(name) not in _NO_NAMES:
            names.setdefault(key_of(name), name)
    return list(names.values())[:most]


def sentences_of(text: str) -> list[str]:
    """Split a text into sentences, with white space folded."""
    return [folded for part in _SENTENCE_END.split(text) if (folded := " ".join(part.split()))]


def generated_calls(reply: str, text: str, most: int) -> list[ToolCall]:
    """Make at most `most` calls from the model's reply and from the text itself.

    Names that the model gave come first, if the text has them too. Each name is an entity, with the sentence that has
    it as an observation; two names of one sentence are related by what stands between them, if that is short.
    """
    folded = " ".join(text.split()).casefold()
    grounded = [name for name in names_in(reply) if key_of(name) in folded]
    names = {key_of(name): name for name in grounded}
    for name in names_in(text):
        names.setdefault(key_of(name), name)
    sentences = sentences_of(text)
    chosen = list(names.values())[: max(1, most * 2 // 5)]
    calls = [ToolCall("create_entity", {"name": name, "type": "Term"}) for name in chosen]
    for name in chosen:
        sentence = next((one for one in sentences if key_of(name) in one.casefold()), "")
        if sentence:
            calls.append(ToolCall("add_observation", {"entity": name, "text": sentence}))
    calls += _relations(chosen, sentences)
    return calls[:most]


_MOST_BETWEEN = 40


def _relations(names: Sequence[str], sentences: Sequence[str]) -> list[ToolCall]:
    calls = []
    for sentence in sentences:
        places = sorted((at, name) for name in names if (at := sentence.casefold().find(key_of(name))) >= 0)
        for (at, first), (other_at, second) in itertools.pairwise(places):
            between = sentence[at + len(first) : other_at].strip(" ,;:`[]()")
            if between and len(between) <= _MOST_BETWEEN and ".md" not in between:
                relation = {"subject": first, "predicate": between, "object": second}
                calls.append(ToolCall("create_relation", relation))
    return calls


Work = Callable[[Desk, Mapping[str, Any]], int]
"""Writes what a rung has to write, and returns how many writes it tried."""


@dataclass(frozen=True)
class Rungs:
    """The nodes below the agent. options: of the ladder."""

    options: StagedOptions

    def suggested(self, state: Mapping[str, Any], config: RunnableConfig) -> Command[Any]:
        """Climb the second rung. Native calls of the message were run by the agent itself."""

        def work(desk: Desk, state: Mapping[str, Any]) -> int:
            message = last_reply(state["messages"])
            if message is None:
                return 0
            parsed = parse_text(message.text, str(message.response_metadata.get("finish_reason", "stop")))
            desk.ledger.skipped += parsed.invalid
            desk.run("suggested", "suggested", parsed.calls)
            return len(parsed.calls)

        return self._climb("suggested", work, "generated", state, config)

    def generated(self, state: Mapping[str, Any], config: RunnableConfig) -> Command[Any]:
        """Climb the third rung."""

        def work(desk: Desk, state: Mapping[str, Any]) -> int:
            message = last_reply(state["messages"])
            calls = generated_calls("" if message is None else message.text, text_of(state), self.options.max_calls)
            desk.run("generated", "generated", calls)
            return len(calls)

        return self._climb("generated", work, "forced", state, config)

    def forced(self, state: Mapping[str, Any], config: RunnableConfig) -> Command[Any]:
        """Climb the last rung: its entity is the first name of the text, or else the document itself."""

        def work(desk: Desk, state: Mapping[str, Any]) -> int:
            names = names_in(text_of(state), most=1)
            document = Entity.model_construct(name=f"Document {desk.source}", type="Document")
            entity = Entity(name=names[0], type="Term") if names else document
            writes = (ChunkEvidence(name=_evidence_name(desk)), entity)
            for write in writes:
                if not desk.write("forced", "forced", write):
                    desk.ledger.unconfirmed += 1
            return len(writes)

        return self._climb("forced", work, STAGE, state, config)

    def _climb(
        self, stage: str, work: Work, next_stage: str, state: Mapping[str, Any], config: RunnableConfig
    ) -> Command[Any]:
        note_stage_start(stage)
        desk = desk_of(self.options, state, config)
        before = desk.ledger.counts()
        tries = work(desk, state)
        gained = desk.ledger.gained_since(before)
        outcome = "confirmed" if gained["confirmed"] else "unconfirmed" if tries else "nothing"
        goto = STAGE if gained["confirmed"] else next_stage
        note_stage_end(stage, outcome, goto, **gained)
        return Command(goto=goto, update=desk.ledger.update())

    def finalize(self, state: Mapping[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """End the ladder. Raises: LadderFailed if no write is confirmed, though there was something to write."""
        note_stage_start(STAGE)
        desk = desk_of(self.options, state, config)
        ledger, before = desk.ledger, desk.ledger.counts()
        if ledger.confirmed:
            _retry_relations(desk)
            _link_evidence(desk)
        outcome = ledger.first_origin or ("skipped_empty" if is_blank(text_of(state)) else "failed")
        note_stage_end(STAGE, outcome, STAGE, **ledger.gained_since(before))
        if outcome == "failed":
            raise _keep_dead_letter(desk)
        message = AIMessage(_in_words(outcome, ledger), id="outcome", name=STAGE)
        return {**ledger.update(), "outcome": outcome, "messages": [message]}


def _retry_relations(desk: Desk) -> None:
    """Write each unconfirmed relation once more: its ends may have been written after it."""
    ledger = desk.ledger
    pending = {Relation(**relation).key: relation for relation in reversed(ledger.pending)}
    for key, relation in reversed(pending.items()):
        if key in ledger.confirmed:
            continue
        origin: Any = relation["origin"]
        confirmed = desk.write(STAGE, origin, Relation(**relation))
        note_event("relation_retried", STAGE, origin=origin, confirmed=confirmed)
        if not confirmed:
            ledger.warnings.append("relation_not_written")
    ledger.pending = []


def _evidence_name(desk: Desk) -> str:
    return f"Evidence {desk.source}-{desk.chunk}"


def _link_evidence(desk: Desk) -> None:
    """Write one node of evidence for the chunk, and link it to each name that was written."""
    name, ledger = _evidence_name(desk), desk.ledger
    origin: Any = ledger.first_origin
    evidence = ChunkEvidence(name=name)
    if evidence.key not in ledger.confirmed and not desk.write(STAGE, origin, evidence):
        ledger.warnings.append("evidence_not_written")
        return
    written = Written(origin, desk.source, desk.chunk)
    for touched in ledger.written_names():
        if key_of(touched) == key_of(name):
            continue
        if not is_confirmed(attempt(lambda linked=touched: desk.store.link_evidence(name, linked, written))):
            ledger.warnings.append("evidence_not_linked")


def _keep_dead_letter(desk: Desk) -> LadderFailed:
    """Keep a dead letter of a chunk of which nothing was written, if possible, and return the error to raise."""
    record = {"source": desk.source, "chunk": desk.chunk, "outcome": "failed", **desk.ledger.counts()}
    is_stored = is_confirmed(attempt(lambda: desk.store.add_dead_letter(desk.source, desk.chunk, record)))
    record["kept"] = is_stored
    note_event("dead_letter", STAGE, kept=is_stored, error_type="LadderFailed")
    where = "its dead letter is in the store" if is_stored else "the store did not take its dead letter either"
    message = f"nothing could be written of chunk {desk.chunk} of {desk.source}; {where}; check the store"
    return LadderFailed(message, record)


def _in_words(outcome: str, ledger: StageLedger) -> str:
    if outcome == "skipped_empty":
        return "skipped_empty: there is nothing in the chunk to write."
    left_out = f"{ledger.unconfirmed} not confirmed, {ledger.skipped} skipped, {ledger.dropped} dropped"
    return f"{outcome}: {len(ledger.confirmed)} writes confirmed, {left_out}."
