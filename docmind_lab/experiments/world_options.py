"""What a system under a deadline meets: a simulated `World`, `Live` endpoints, or a `Replay` of a recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from docmind_lab.core.clock import ClockName
from docmind_lab.core.errors import ConfigurationError
from docmind_lab.core.keywords import answers_wrong_names
from docmind_lab.core.server_behaviour import STOPS, ServerBehaviour
from docmind_lab.core.shown import ShownAsCall
from docmind_lab.services.scripted_model.time_pressure import DEFAULT_UNDER_PRESSURE, UnderPressure
from docmind_lab.services.scripted_model.variation import checked_variation

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
        checked_variation(self.variation)
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

    @property
    def written_faults(self) -> Sequence[str | Fault]:
        """The faults as a list."""
        return [self.faults] if isinstance(self.faults, str) else self.faults


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

    @property
    def is_watched(self) -> bool:
        """Whether a recording or a cap needs every request to be seen."""
        return any(option is not None for option in (self.record, self.max_requests, self.max_tokens))


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
