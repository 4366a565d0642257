"""What a user's graph is run with besides its input: a context, a configuration, a store, answers to its interrupts.

Each may be given for all inputs, and for one input in its line, which then counts.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, TypeAdapter, ValidationError

from docmind_lab.core.errors import ConfigurationError

StoreMaker = Callable[[], BaseStore]

_CONFIG_KEYS = {"configurable", "tags", "metadata", "recursion_limit", "run_name", "max_concurrency"}
_NOT_YOURS = {"checkpoint_id": "each run begins a thread of its own"}


@dataclass(frozen=True)
class RunSettings:
    """What a run of a user's graph is given besides its input.

    context: the run's context, as the graph's `context_schema` has it; None for none. config: the run's configuration,
    as LangGraph takes it: {"configurable": {…}, "recursion_limit": …}. resume: what the graph's interrupts are answered
    with, one after the other.
    """

    context: Any = None
    config: Mapping[str, Any] = field(default_factory=dict)
    resume: tuple[Any, ...] = ()

    @classmethod
    def of(cls, context: Any = None, config: Any = None, resume: Any = (), where: str = "graph") -> RunSettings:
        """Check the values as a user gives them.

        context: a mapping or an object of the graph's `context_schema`; None for none. config: a configuration, or what
        stands under its "configurable". resume: a list of answers, one for each interrupt in turn. where: how errors
        name the place.

        Raises: ConfigurationError for a value of another kind, or a key that is the lab's.
        """
        if config is not None and not isinstance(config, Mapping):
            raise ConfigurationError(f'{where}: config must be an object, such as {{"user_id": "ada"}}, not {config!r}')
        settings: dict[str, Any] = dict(config or {})
        if settings and not settings.keys() <= _CONFIG_KEYS:
            settings = {"configurable": settings}
        for key in set(settings.get("configurable", {})) & _NOT_YOURS.keys():
            raise ConfigurationError(f"{where}: config must not set {key}: {_NOT_YOURS[key]}")
        if isinstance(resume, str | Mapping) or not isinstance(resume, Sequence):
            raise ConfigurationError(
                f"{where}: resume must be a list of answers, one for each interrupt, not {resume!r}"
            )
        return cls(context, settings, tuple(resume))

    def over(self, general: RunSettings) -> RunSettings:
        """Return these settings, with the general ones where these have none."""
        merged: dict[str, Any] = {**general.config, **self.config}
        configurable = {**general.config.get("configurable", {}), **self.config.get("configurable", {})}
        if configurable:
            merged["configurable"] = configurable
        context = general.context if self.context is None else self.context
        if isinstance(context, Mapping) and isinstance(general.context, Mapping):
            context = {**general.context, **context}
        return RunSettings(context, merged, self.resume or general.resume)

    def for_graph(self, graph: Pregel[Any, Any, Any, Any], where: str) -> RunSettings:
        """Return the settings as they are, once the context is known to fit the graph's schema.

        The context stays as it was given: an object of a user's class cannot go to a worker process that has not
        imported the user's module yet.

        Raises: ConfigurationError for a context that does not fit, or that the graph needs and nobody gave.
        """
        schema = graph.context_schema
        if schema is None:
            if self.context is not None:
                raise ConfigurationError(f"{where}: the graph has no context_schema, so it takes no context")
            return self
        try:
            self.context_for(graph)
        except ValidationError as error:
            raise ConfigurationError(f"{where}: {_words(error, schema)}") from error
        return self

    def context_for(self, graph: Pregel[Any, Any, Any, Any]) -> Any:
        """Return the context as the graph's schema has it, its defaults included; None without a schema.

        Raises: pydantic's ValidationError for a context that does not fit.
        """
        schema = graph.context_schema
        if schema is None or (self.context is not None and not isinstance(self.context, Mapping)):
            return self.context
        context = dict(self.context or {})
        try:
            value = TypeAdapter(schema).validate_python(context)
        except ValidationError:
            raise
        except Exception:  # noqa: BLE001 - a schema may hold types that pydantic does not know; LangGraph checks less
            value = context if self.context is not None else None
        # LangGraph makes an object of a mapping itself, and leaves a TypedDict as it is given.
        is_class = inspect.isclass(schema) and (issubclass(schema, BaseModel) or dataclasses.is_dataclass(schema))
        return value if is_class else context


def _words(error: ValidationError, schema: Any) -> str:
    missing = [str(each["loc"][0]) for each in error.errors() if each["type"] == "missing" and each["loc"]]
    if missing:
        example = json.dumps({name: _example(schema, name) for name in missing})
        return f"the graph's context needs {', '.join(missing)}: give it, such as --context '{example}' (context={{…}})"
    first = error.errors()[0]
    return f"context.{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _example(schema: Any, name: str) -> Any:
    try:
        kind = get_type_hints(schema).get(name)
    except Exception:  # noqa: BLE001 - hints may name what cannot be resolved
        kind = None
    return {int: 1, float: 1.0, bool: True}.get(kind, "…")  # type: ignore[arg-type]


def store_for_run(maker: StoreMaker | None) -> BaseStore:
    """Return the store of one run: what the function makes, or an empty one in memory.

    Raises: ConfigurationError if the function made something else.
    """
    store = InMemoryStore() if maker is None else maker()
    if not isinstance(store, BaseStore):
        raise ConfigurationError(f"store: the function makes a {type(store).__name__}, not a LangGraph store")
    return store
