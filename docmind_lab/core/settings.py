"""Settings: environment variables with the prefix DOCMIND_ (nesting by __), or keyword arguments.

    DOCMIND_AGENTS__DECISION_TIMEOUT=20  DOCMIND_LLM__BASE_URL=http://127.0.0.1:8000/v1

Every value is checked when the settings are made; an unknown name is refused. Which endpoints may be reached is
decided here too (`Settings.admit`): loopback always, anything else only if remote endpoints are allowed and listed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from docmind_lab.core.addresses import host_of, is_loopback, redact_url, without_credentials
from docmind_lab.core.errors import ConfigurationError, EndpointRefused
from docmind_lab.core.shown import ShownAsCode
from docmind_lab.core.time_policies import TimePolicies

PREFIX = "DOCMIND_"
DEADLINE_VARIABLE: Final = f"{PREFIX}DEADLINE_S"
"""What a program is told of its deadline: seconds left at its start, a duration. It is no setting."""


def _positive_finite(value: float) -> float:
    if not math.isfinite(value) or value <= 0:
        raise ValueError("must be a finite number of seconds above 0")
    return value


Seconds = Annotated[float, AfterValidator(_positive_finite)]
_SECTION = ConfigDict(extra="forbid", frozen=True)


def _known_policies(text: str) -> str:
    return TimePolicies.parse(text).text


class AgentSettings(BaseModel):
    """How the agents run.

    Args:
        decision_timeout: Seconds for one query.
        time_policies: How the time of model calls is spent, as `TimePolicies.parse` reads it; empty for no policy.
    """

    model_config = _SECTION

    decision_timeout: Seconds = 20.0
    max_retries: int = Field(default=1, ge=0, le=10)
    max_concurrent_agents: int = Field(default=3, ge=1, le=64)
    enable_deadline_propagation: bool = True
    enable_router_injection: bool = False
    enable_parallel_tool_execution: bool = True
    max_workflow_depth: int = Field(default=40, ge=5, le=1000)
    time_policies: Annotated[str, AfterValidator(_known_policies)] = ""


class LlmSettings(BaseModel):
    """The language model. base_url: None for the simulated service. request_timeout_seconds: for one request."""

    model_config = _SECTION

    base_url: str | None = None
    model: str = "docmind-scripted"
    api_key: SecretStr = SecretStr("unused")
    request_timeout_seconds: Seconds = 60.0


class DatabaseSettings(BaseModel):
    """The vector store. qdrant_url: None for the simulated service."""

    model_config = _SECTION

    qdrant_url: str | None = None
    qdrant_timeout: Seconds = 60.0


class SecuritySettings(BaseModel):
    """Which endpoints may be reached. endpoint_allowlist: host names or addresses, without ports."""

    model_config = _SECTION

    allow_remote_endpoints: bool = False
    endpoint_allowlist: tuple[str, ...] = ()


class Settings(ShownAsCode, BaseSettings):
    """All settings, read from DOCMIND_ environment variables unless they are given as arguments.

    Args:
        agents: `AgentSettings`, or a mapping of their fields, as the others.
        llm: `LlmSettings`.
        database: `DatabaseSettings`.
        security: `SecuritySettings`.
        log_level: Level of Python's logging.

    Raises:
        ConfigurationError: A value cannot be used; the message names the setting and its environment variable.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
        # The error that ours is raised from would otherwise show an API key in a traceback.
        hide_input_in_errors=True,
    )

    agents: AgentSettings = AgentSettings()
    llm: LlmSettings = LlmSettings()
    database: DatabaseSettings = DatabaseSettings()
    security: SecuritySettings = SecuritySettings()
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"

    def __init__(self, **values: Any) -> None:
        _refuse_unknown_variables()
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigurationError(_explain(error)) from error
        except SettingsError as error:
            # Raised for a value that should be JSON and is not; the list is the only setting of that kind.
            raise ConfigurationError(
                f"setting security.endpoint_allowlist ({PREFIX}SECURITY__ENDPOINT_ALLOWLIST): must be a JSON list of "
                'host names, such as ["models.example"]'
            ) from error
        self._check_endpoints()

    def _check_endpoints(self) -> None:
        # When the settings are made, not at the first call: nothing has been sent yet.
        for name, url in (
            ("llm.base_url", self.llm.base_url),
            ("database.qdrant_url", self.database.qdrant_url),
        ):
            if url is None:
                continue
            self.admit(url, name=name)
            if not url.lower().startswith(("http://", "https://")):
                raise ConfigurationError(
                    f"{name} must be an http or https REST address: gRPC calls cannot be held to a deadline"
                )

    def __repr__(self) -> str:
        sections = ((name, getattr(self, name)) for name in type(self).model_fields)
        return "\n".join(["Settings", *(f"  {name}: {_section_text(section)}" for name, section in sections)])

    def __str__(self) -> str:
        return repr(self)

    def recorded(self, exclude: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the settings that a study stores, as JSON types, without API key and secrets of URLs.

        exclude: sections (True) or fields of them (a set of names) that are left out too.
        """
        hidden: dict[str, Any] = {"llm": {"api_key"}}
        for section, names in (exclude or {}).items():
            hidden[section] = True if names is True else hidden.get(section, set()) | names
        values: dict[str, Any] = self.model_dump(mode="json", exclude=hidden)
        for section, name in (("llm", "base_url"), ("database", "qdrant_url")):
            url = values.get(section, {}).get(name)
            if url is not None:
                values[section][name] = redact_url(url)
        return values

    def admit(self, url: str, *, name: str = "endpoint") -> None:
        """Check that the settings allow requests to an address.

        Args:
            url: The address.
            name: Name of the address in the error's message.

        Raises:
            EndpointRefused: It may not; the message names the host and how to allow it.
        """
        try:
            host = host_of(url)
        except ValueError as error:
            raise EndpointRefused(
                f"{name}: {redact_url(url)!r} {error}; write it like http://127.0.0.1:8000/v1"
            ) from None
        if is_loopback(host):
            return
        listed = {entry.lower() for entry in self.security.endpoint_allowlist}
        if self.security.allow_remote_endpoints and host in listed:
            return
        raise EndpointRefused(
            f"{name}: {host} is not on this machine; to allow it set {PREFIX}SECURITY__ALLOW_REMOTE_ENDPOINTS=true "
            f'and add it to {PREFIX}SECURITY__ENDPOINT_ALLOWLIST=["{host}"]'
        )

    def replaced(self, **sections: dict[str, Any]) -> Self:
        """Return a copy with fields of some sections replaced: `settings.replaced(agents={"decision_timeout": 2})`.

        Args:
            sections: Section → field → value.

        Raises:
            ConfigurationError: A value cannot be used, as for the settings themselves.
        """
        values = {name: getattr(self, name) for name in type(self).model_fields}
        for section, fields in sections.items():
            values[section] = {**dict(values.get(section, {})), **fields}
        return type(self)(**values)


def _section_text(section: object) -> str:
    """Return a section as text for people, without keys, and without users or passwords of addresses."""
    if not isinstance(section, BaseModel):
        return str(section)
    return ", ".join(f"{name}={_value_text(value)}" for name, value in section)


def _value_text(value: object) -> str:
    if isinstance(value, SecretStr):
        return "(not shown)"
    if isinstance(value, str) and "://" in value:
        return repr(redact_url(value))
    return f"{value:g}" if isinstance(value, float) else repr(value)


def variable_names() -> dict[str, str]:
    """Return a map from environment variable to dotted field name, for every setting."""
    names = {f"{PREFIX}LOG_LEVEL": "log_level"}
    for section, option in Settings.model_fields.items():
        fields = getattr(option.annotation, "model_fields", {})
        names |= {f"{PREFIX}{section}__{field}".upper(): f"{section}.{field}" for field in fields}
    return names


def _refuse_unknown_variables() -> None:
    names = variable_names()
    for variable in sorted(os.environ):
        if variable.upper().startswith(PREFIX) and variable.upper() not in {*names, DEADLINE_VARIABLE}:
            raise ConfigurationError(f"unknown setting {variable}; the settings are {', '.join(sorted(names))}")


def _explain(error: ValidationError) -> str:
    variables = {field: variable for variable, field in variable_names().items()}
    lines = []
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"][:2])
        # The value of anything but a known setting may hold the key: under a misspelt name, or inside a section.
        is_public = field in variables and "api_key" not in field
        value = f", not {without_credentials(repr(problem.get('input')))}" if is_public else ""
        message = problem["msg"].removeprefix("Value error, ")
        lines.append(f"setting {field} ({variables.get(field, 'unknown')}): {message}{value}")
    return "; ".join(lines)
