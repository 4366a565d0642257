"""The tools that write to the graph: their schemas, the write that each call makes, and the order of calls.

ordered([relation, entity, observation])             # [observation, entity, relation]
write_of(ToolCall("create_relation", {"from": {"name": "Oslo"}, "to": "Bergen", "type": "near"}))
# Relation(subject="Oslo", predicate="near", object="Bergen")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from docmind_lab.systems.base.model_client import function_tool
from docmind_lab.systems.staged.graph_store import GraphStore, Written, key_of
from docmind_lab.systems.staged.parsing import ToolCall

MOST_CHARACTERS_OF_A_NAME = 120


def _name(value: Any) -> Any:
    """Return the name in an end of a relation that is given as an object."""
    if isinstance(value, Mapping):
        return next((value[key] for key in ("name", "entity", "id") if isinstance(value.get(key), str)), None)
    return value


Name = Annotated[
    str,
    BeforeValidator(_name),
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS_OF_A_NAME),
]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


def gold_entity(name: str) -> str:
    """Return what an entity counts as in a gold list, whether written itself or with an observation."""
    return f"entity:{key_of(name)}"


def gold_relation(subject: str, target: str) -> str:
    """Return what a relation of two names counts as in a gold list, in this direction, with any predicate."""
    return f"relation:{key_of(subject)}|{key_of(target)}"


class Write(BaseModel):
    """A write that a call asks for. Its fields are the arguments of the store's method that performs it.

    kind: level in the tables. method: of `GraphStore`. about: the fields that are names. gold: what those names count
    as in a gold list; None for what no list has.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: ClassVar[str]
    method: ClassVar[str]
    about: ClassVar[tuple[str, ...]] = ()
    gold: ClassVar[Callable[..., str] | None] = None

    def apply(self, store: GraphStore, written: Written) -> object:
        """Perform the write on the store and return the store's result."""
        return getattr(store, self.method)(*(getattr(self, field) for field in type(self).model_fields), written)

    @property
    def key(self) -> str:
        """Key of the write; two writes with the same effect have the same key."""
        fields = type(self).model_fields
        return ":".join([self.kind, "|".join(key_of(str(getattr(self, field))) for field in fields)])

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the write is about."""
        return tuple(getattr(self, field) for field in self.about)

    @property
    def counts_as(self) -> tuple[str, ...]:
        """The entries of a gold list that the write satisfies."""
        gold = type(self).gold
        return () if gold is None else (gold(*self.names),)


class Entity(Write):
    """A write of an entity."""

    kind: ClassVar = "entity"
    method: ClassVar = "add_entity"
    about: ClassVar = ("name",)
    gold: ClassVar = staticmethod(gold_entity)
    name: Name = Field(validation_alias=AliasChoices("name", "entity"))
    type: str = Field("", validation_alias=AliasChoices("type", "entity_type"))

    @property
    def key(self) -> str:
        """Key of the entity: its name alone, whatever its type."""
        return f"{self.kind}:{key_of(self.name)}"


class Observation(Write):
    """A write of what the text says about an entity."""

    kind: ClassVar = "observation"
    method: ClassVar = "add_observation"
    about: ClassVar = ("entity",)
    gold: ClassVar = staticmethod(gold_entity)
    entity: Name = Field(validation_alias=AliasChoices("entity", "name", "subject"))
    text: Words = Field(validation_alias=AliasChoices("text", "observation", "content"))


class TypeOfEntity(Write):
    """A write of a type for an existing entity."""

    kind: ClassVar = "type"
    method: ClassVar = "set_type"
    about: ClassVar = ("name",)
    name: Name = Field(validation_alias=AliasChoices("name", "entity"))
    type: Words = Field(validation_alias=AliasChoices("type", "entity_type"))


class Relation(Write):
    """A write of a relation between two entities."""

    kind: ClassVar = "relation"
    method: ClassVar = "relate"
    about: ClassVar = ("subject", "object")
    gold: ClassVar = staticmethod(gold_relation)
    subject: Name = Field(validation_alias=AliasChoices("subject", "source", "from"))
    predicate: Words = Field(validation_alias=AliasChoices("predicate", "relation", "type", "label"))
    object: Name = Field(validation_alias=AliasChoices("object", "target", "to"))


class ChunkEvidence(Write):
    """A write of the node that stands for a chunk; no model's tool writes it, and it is never linked to itself."""

    kind: ClassVar = "evidence"
    method: ClassVar = "add_evidence"
    name: Words


KINDS: Mapping[str, type[Write]] = {
    "add_observation": Observation,
    "create_entity": Entity,
    "set_entity_type": TypeOfEntity,
    "create_relation": Relation,
}
"""Tool → what a call of it writes."""

_DESCRIPTIONS = {
    "add_observation": "Write what the text says of an entity, as one sentence of it.",
    "create_entity": "Write an entity that the text is about.",
    "set_entity_type": "Change the type of an entity that is there.",
    "create_relation": "Write a relation of two entities that are there.",
}


TOOLS: tuple[dict[str, Any], ...] = tuple(
    function_tool(name, _DESCRIPTIONS[name], {field: {"type": "string"} for field in kind.model_fields})
    for name, kind in KINDS.items()
)
"""The tools as they are offered to a model. They have no code of their own: the ladder runs calls in its own order."""

_RANKS = {"add_observation": 0, "create_entity": 1, "create_relation": 3}
_OTHER = 2

Called = TypeVar("Called", bound=ToolCall)


def ordered(calls: Sequence[Called]) -> list[Called]:
    """Sort the calls into the order in which they run: observations, entities, others, relations."""
    return sorted(calls, key=lambda call: _RANKS.get(call.name, _OTHER))


def write_of(call: ToolCall) -> Write | None:
    """Return the write that the call asks for; None for an unknown tool or unusable arguments."""
    kind = KINDS.get(call.name)
    if kind is None:
        return None
    try:
        return kind.model_validate(dict(call.arguments))
    except ValidationError:
        return None
