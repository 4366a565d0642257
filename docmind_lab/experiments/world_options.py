"""What a system under a deadline meets: a simulated `World`, `Live` endpoints, or a `Replay` of a recording.

Their fields are the options of `compare`, of the command line and of study files. Options by name are the system and
the world that they mean:

    nouns_of({"graph": "my_app:graph", "inputs": "inputs.jsonl", "latencies": "typical"})
    # {"system": dl.graph("my_app:graph", inputs="inputs.jsonl"), "world": dl.World(latencies="typical")}
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.numbers import require_share
from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.core.shown import ShownAsCall
from docmind_lab.services.scripted_model.variation import DEFAULT_UNDER_PRESSURE, UnderPressure
from docmind_lab.systems.system_catalogue import SYSTEMS, system_in

if TYPE_CHECKING:
    from docmind_lab.core.settings import Settings
    from docmind_lab.services.faults import Fault
    from docmind_lab.statistics.latency.profile import ProfileChoice
    from docmind_lab.systems.own import Services


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class ScriptedModel(ShownAsCall):
    """The simulated model.

    Args:
        variation: Share, from 0 to 1, of its decisions that go another way than the best: wrong hand-overs, searches
            for a part of the words, answers with less in them. They are drawn by seed. With 0, quality is a constant of
            the question.
        under_pressure: What it does when its prompt says that little time is left, as under the policy "aware":
            "hurries", "panics" or "ignores", with a share of the time: "hurries:0.25". An assumption.
    """

    noun: ClassVar[str] = "dl.ScriptedModel"
    variation: float = 0.0
    under_pressure: str = DEFAULT_UNDER_PRESSURE

    def __post_init__(self) -> None:
        require_share("model_variation", self.variation, "decisions")
        UnderPressure.parse(self.under_pressure)


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class World(ShownAsCall):
    """Simulated services. What is left out is as the system and the clock have it.

    Args:
        latencies: A latency profile or its name: fast, typical, heavy_tail, local_gpu, coding_2026 or a file of
            docmind-lab profile; "/N" divides it. Or profiles by role, such as {"*": "typical", "judge": "judge.json"}
            or ["typical", "judge=judge.json"]; of your own graph, roles are its nodes. Defaults to "heavy_tail/3", on
            the wall clock to "typical/6".
        faults: One fault or several, with =seconds, @attempts, :role and :probability where they are wanted, such as
            hang, stall=5, http_500@1 or trickle:synthesis:0.5.
        server: What the model server does when its client leaves: "stops", "goes-on", a profile that ships with the
            package, such as "llama-cpp-2026.10", or a .json file of docmind-lab probe server.
        endpoints: File with simulated endpoints of other services that your graph calls, beside the ready ones (TOML).
        clock: "virtual": the same stack in simulated time, without waiting, with the same tables every time. "wall":
            real time, over sockets. None means "wall" if the settings name a live endpoint, else "virtual".
        cpu_charge: CPU seconds that each request to a model or a store costs in virtual time, where Python's own work
            takes no time otherwise.
        model: What the simulated model does.
    """

    noun: ClassVar[str] = "dl.World"
    _: KW_ONLY
    latencies: ProfileChoice | Sequence[str] | None = None
    faults: Sequence[str | Fault] | str = ()
    server: ServerBehaviour | str = STOPS.name
    endpoints: str | os.PathLike[str] | None = None
    clock: ClockName | None = None
    cpu_charge: float = 0.0
    model: ScriptedModel = field(default=ScriptedModel())

    def __post_init__(self) -> None:
        _ = self.behaviour

    @property
    def behaviour(self) -> ServerBehaviour:
        """The profile of `server`. Raises: ConfigurationError for an unknown name."""
        return ServerBehaviour.named(self.server) if isinstance(self.server, str) else self.server

    @property
    def simulation(self) -> dict[str, Any]:
        """What a request costs and what the model does, by the names of a `Comparison`."""
        return {"cpu_charge": self.cpu_charge, **{f"model_{name}": each for name, each in vars(self.model).items()}}


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Live(World):
    """Real endpoints, on the wall clock. What no endpoint is named for is simulated, as a `World` says.

    Args:
        settings: Settings, which name the endpoints of the lab's own systems; those of the environment when left out.
        services: What answers a graph or an agent of your own: "own": requests go where its code sends them, and cost
            what they cost. "simulated": simulated services answer whatever host it names, and no key is used.
        max_requests: The most model requests. At the first request past it no further run begins, and runs that need
            another request are left out. The study is then not complete; its manifest says why.
        max_tokens: The most tokens of model calls, in the same way; calls under way may pass it.
        record: Folder for a recording of the study: timings of every call, for a `Replay`.
        record_text: Whether the recording keeps what was answered, and digests of what was asked.
        before_sending: Called, before anything is sent, with what a live endpoint is expected to be sent. Whatever it
            raises ends the study.
        latencies: Of the services that are simulated all the same, as `World` has them.
        faults: Of the services that are simulated all the same.
        server: What their model server does when its client leaves.
        endpoints: File with simulated endpoints of other services (TOML).
        clock: "wall", which live endpoints need.
        cpu_charge: Of no use on the wall clock.
        model: What the simulated model does.
    """

    noun: ClassVar[str] = "dl.Live"
    _: KW_ONLY
    clock: ClockName | None = "wall"
    settings: Settings | None = None
    services: Services = "own"
    max_requests: int | None = None
    max_tokens: int | None = None
    record: str | os.PathLike[str] | None = None
    record_text: bool = False
    before_sending: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clock != "wall":
            raise ConfigurationError("clock: live endpoints answer in real time; leave the clock out of Live(…)")


@answers_wrong_names
@dataclass(frozen=True, repr=False)
class Replay(ShownAsCall):
    """A recording, played again in virtual time. It settles everything but budgets, runs, alternatives and retries.

    Args:
        folder: The recording's folder, as `Live(record=…)` wrote it.
    """

    noun: ClassVar[str] = "dl.Replay"
    folder: str | os.PathLike[str]

    def __post_init__(self) -> None:
        if not isinstance(self.folder, str | os.PathLike) or not os.fspath(self.folder):
            raise ConfigurationError(f"replay: must be the folder of a recording, not {self.folder!r}")


AnyWorld = World | Live | Replay


# ---- by name, as a command line and a study file have them

MODEL: Final = "model_"
"""How the options of the simulated model begin."""


def fields_of(noun: type) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a noun by the names of their options; those of the simulated model with `MODEL` before."""
    fields = {field.name: field for field in dataclasses.fields(noun)}
    if fields.pop("model", None) is not None:
        fields |= {f"{MODEL}{field.name}": field for field in dataclasses.fields(ScriptedModel)}
    return fields


_OF_SYSTEMS: Final = frozenset(name for noun in SYSTEMS for name in fields_of(noun))
_OF_WORLDS: Final = frozenset(fields_of(Live))


def nouns_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords of `compare` that options mean; those that are of no system and no world stay as they are.

    Args:
        options: Options by name: the fields of systems and worlds, "system" for a system of the lab, "replay" for the
            folder of a recording. None, or a name that is left out, is as by default.

    Raises:
        ConfigurationError: An option does not go with another, or is of another system.
    """
    options = {name: value for name, value in options.items() if value is not None}
    of_system = {name: value for name, value in options.items() if name in _OF_SYSTEMS or name == "system"}
    of_world = {name: value for name, value in options.items() if name in _OF_WORLDS or name == "replay"}
    rest = {name: value for name, value in options.items() if name not in {*of_system, *of_world}}
    return {"system": system_in(of_system), "world": world_in(of_world), **rest}


def world_in(options: Mapping[str, Any]) -> AnyWorld:
    """Return the world that options mean: live if one is of live endpoints, a replay if one names a recording.

    Nothing is sent to a user's own endpoints unless `services` says so.
    Raises: ConfigurationError for an option that a recording has settled.
    """
    values = dict(options)
    folder = values.pop("replay", None)
    if folder is not None:
        for name in values.keys() - {"settings", "before_sending"}:
            raise ConfigurationError(f"{name}: the recording has settled it; leave it out of a replay")
        return Replay(folder)
    model = {name.removeprefix(MODEL): values.pop(name) for name in list(values) if name.startswith(MODEL)}
    if model:
        values["model"] = ScriptedModel(**model)
    only_live = fields_of(Live).keys() - fields_of(World).keys()
    is_live = any(name in only_live and value is not False and value != "simulated" for name, value in values.items())
    if is_live:
        if values.get("clock", "wall") != "wall":
            option = next(name for name in values if name in only_live)
            raise ConfigurationError(f"{option}: in virtual time nothing is sent; use the wall clock (--clock wall)")
        return Live(**{"services": "simulated"} | values)
    return World(**{name: value for name, value in values.items() if name not in only_live})


def as_live(world: World, **more: Any) -> Live:
    """Return a world on the wall clock with these fields of a live one; nothing goes to a user's own endpoints anew."""
    values = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    services = getattr(world, "services", "simulated")
    return Live(**values | {"clock": "wall", "services": services} | more)
