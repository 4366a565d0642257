"""Settings: where each comes from, what is refused and how, and which endpoints may be reached."""

from __future__ import annotations

import os
import traceback
from operator import attrgetter

import pytest
from pydantic import SecretStr

from docmind_lab.core.addresses import same_origin
from docmind_lab.core.errors import ConfigurationError, EndpointRefused
from docmind_lab.core.settings import Settings, variable_names

# One value for each setting that differs from its default: what is written, and what is read.
EXAMPLES = {
    "DOCMIND_AGENTS__DECISION_TIMEOUT": ("2.5", 2.5),
    "DOCMIND_AGENTS__MAX_RETRIES": ("3", 3),
    "DOCMIND_AGENTS__MAX_CONCURRENT_AGENTS": ("5", 5),
    "DOCMIND_AGENTS__ENABLE_DEADLINE_PROPAGATION": ("false", False),
    "DOCMIND_AGENTS__ENABLE_ROUTER_INJECTION": ("true", True),
    "DOCMIND_AGENTS__ENABLE_PARALLEL_TOOL_EXECUTION": ("0", False),
    "DOCMIND_AGENTS__MAX_WORKFLOW_DEPTH": ("12", 12),
    "DOCMIND_AGENTS__TIME_POLICIES": ("hedge:2s", "hedge:2s"),
    "DOCMIND_LLM__BASE_URL": ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
    "DOCMIND_LLM__MODEL": ("qwen", "qwen"),
    "DOCMIND_LLM__API_KEY": ("sk-quiet", SecretStr("sk-quiet")),
    "DOCMIND_LLM__REQUEST_TIMEOUT_SECONDS": ("7", 7.0),
    "DOCMIND_DATABASE__QDRANT_URL": ("http://localhost:6333", "http://localhost:6333"),
    "DOCMIND_DATABASE__QDRANT_TIMEOUT": ("0.25", 0.25),
    "DOCMIND_SECURITY__ALLOW_REMOTE_ENDPOINTS": ("yes", True),
    "DOCMIND_SECURITY__ENDPOINT_ALLOWLIST": ('["models.example"]', ("models.example",)),
    "DOCMIND_LOG_LEVEL": ("DEBUG", "DEBUG"),
}
NOT_SECONDS = [
    (name, value)
    for name in EXAMPLES
    if name.endswith(("TIMEOUT", "SECONDS"))
    for value in ("nan", "-1", "0", "inf", "soon", "")
]


@pytest.fixture(autouse=True)
def no_settings_of_the_machine(monkeypatch):
    for name in list(os.environ):
        if name.upper().startswith("DOCMIND_"):
            monkeypatch.delenv(name)


# ---- reading


def test_every_setting_has_an_example_here():
    assert set(EXAMPLES) == set(variable_names())


@pytest.mark.parametrize("variable", variable_names())
def test_every_setting_is_read_from_its_variable(variable, monkeypatch):
    written, read = EXAMPLES[variable]
    value_of = attrgetter(variable_names()[variable])
    assert value_of(Settings()) != read
    monkeypatch.setenv(variable, written)
    assert value_of(Settings()) == read


def test_a_variable_in_lower_case_is_read_and_leaves_the_rest_of_its_section_alone(monkeypatch):
    monkeypatch.setenv("docmind_agents__max_retries", "4")
    assert Settings().agents == Settings(agents={"max_retries": 4}).agents


def test_an_argument_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("DOCMIND_AGENTS__DECISION_TIMEOUT", "5")
    assert Settings(agents={"decision_timeout": 2}).agents.decision_timeout == 2.0


def test_settings_cannot_be_changed_in_place() -> None:
    settings = Settings()
    with pytest.raises(ValueError, match="frozen"):
        settings.agents.decision_timeout = 1.0
    with pytest.raises(ValueError, match="frozen"):
        settings.agents = settings.agents


@pytest.mark.parametrize(
    "other", ["http://model:8000/v1", "https://model:8001/v1", "https://store:8000/v1", "https://model/v1", "model", ""]
)
def test_a_key_is_of_one_scheme_host_and_port(other: str) -> None:
    assert same_origin("https://model:8000/v1", "https://MODEL:8000/other")
    assert not same_origin("https://model:8000/v1", other)


# ---- refusing


@pytest.mark.parametrize("variable", ["DOCMIND_AGENTS__DECISION_TIMEOU", "DOCMIND_AGENT__X", "docmind_timeout"])
def test_an_unknown_variable_is_refused_by_name_with_those_there_are(variable, monkeypatch):
    monkeypatch.setenv(variable, "5")
    with pytest.raises(ConfigurationError, match=f"unknown setting {variable}") as caught:
        Settings()
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT" in str(caught.value)


@pytest.mark.parametrize("values", [{"agents": {"decision_timeou": 2}}, {"agnets": {}}])
def test_an_unknown_argument_is_refused_by_name(values):
    section = next(iter(values))
    name = ".".join([section, *values[section]])
    with pytest.raises(ConfigurationError, match=f"setting {name} .*not permitted"):
        Settings(**values)


@pytest.mark.parametrize(
    ("variable", "written"),
    [
        *NOT_SECONDS,
        ("DOCMIND_AGENTS__MAX_RETRIES", "-1"),
        ("DOCMIND_AGENTS__MAX_RETRIES", "1.5"),
        ("DOCMIND_AGENTS__MAX_CONCURRENT_AGENTS", "0"),
        ("DOCMIND_AGENTS__ENABLE_ROUTER_INJECTION", "maybe"),
        ("DOCMIND_AGENTS__MAX_WORKFLOW_DEPTH", "1"),
        ("DOCMIND_AGENTS__TIME_POLICIES", "faster"),
        ("DOCMIND_SECURITY__ENDPOINT_ALLOWLIST", "models.example"),
        ("DOCMIND_SECURITY__ENDPOINT_ALLOWLIST", "[1]"),
        ("DOCMIND_LOG_LEVEL", "LOUD"),
    ],
)
def test_a_value_of_the_wrong_kind_or_range_is_refused_with_its_variable_and_field(variable, written, monkeypatch):
    monkeypatch.setenv(variable, written)
    with pytest.raises(ConfigurationError, match=variable) as caught:
        Settings()
    assert variable_names()[variable] in str(caught.value)
    assert (variable, written) not in NOT_SECONDS or written in str(caught.value)


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(ConfigurationError) as caught:
        Settings(agents={"decision_timeout": -1, "max_retries": 99})
    assert "DOCMIND_AGENTS__DECISION_TIMEOUT" in str(caught.value)
    assert "DOCMIND_AGENTS__MAX_RETRIES" in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"llm": {"api_key": ["sk-secret"]}},
        {"llm": {"api_key": {"value": "sk-secret"}}},
        {"llm": {"apikey": "sk-secret"}},
        {"llm": "sk-secret"},
        {"llm": ["sk-secret"]},
        {"api_key": "sk-secret"},
        {"llm": {"api_key": "sk-secret", "request_timeout_seconds": -1}},
    ],
)
def test_an_api_key_is_never_shown_in_an_error_nor_in_what_caused_it(values):
    with pytest.raises(ConfigurationError) as caught:
        Settings(**values)
    assert "sk-secret" not in "".join(traceback.format_exception(caught.value))


def test_an_api_key_is_not_shown_with_the_settings(monkeypatch):
    monkeypatch.setenv("DOCMIND_LLM__API_KEY", "sk-secret")
    settings = Settings()
    assert "sk-secret" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert settings.llm.api_key.get_secret_value() == "sk-secret"


# ---- endpoints


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "LOCALHOST", "127.8.8.8"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_this_machine_is_always_admitted(scheme, host):
    url = f"{scheme}://{host}:8000/v1"
    Settings().admit(url)
    assert Settings(llm={"base_url": url}).llm.base_url == url


@pytest.mark.parametrize(
    ("security", "admitted"),
    [
        ({}, False),
        ({"allow_remote_endpoints": True}, False),
        ({"endpoint_allowlist": ["models.example"]}, False),
        ({"allow_remote_endpoints": True, "endpoint_allowlist": ["other.example"]}, False),
        ({"allow_remote_endpoints": True, "endpoint_allowlist": ["example"]}, False),
        ({"allow_remote_endpoints": True, "endpoint_allowlist": ["models.example"]}, True),
        ({"allow_remote_endpoints": True, "endpoint_allowlist": ["MODELS.example"]}, True),
    ],
)
@pytest.mark.parametrize(("section", "field"), [("llm", "base_url"), ("database", "qdrant_url")])
def test_another_machine_needs_both_the_permission_and_its_name_on_the_list(security, admitted, section, field):
    def settings() -> Settings:
        return Settings(security=security, **{section: {field: "https://Models.example:443/v1"}})

    if admitted:
        settings()
        return
    with pytest.raises(EndpointRefused, match=f"{section}.{field}: models.example"):
        settings()


ANOTHER_MACHINE = [
    "http://models.example/v1",
    "http://10.0.0.1:6333",
    "http://169.254.169.254/latest",
    "http://0.0.0.0:8000",
    "http://localhost.example:8000",
    "http://127.0.0.1.example",
    "http://127.0.0.1@models.example/v1",
    "http://[2001:db8::1]:8000",
]
NO_HOST = ["", "127.0.0.1:8000", "localhost:8000", "/v1", "http://", "http://[::1", "http:///v1"]
NOT_REST = ["grpc://127.0.0.1:6334", "grpcs://localhost:6334", "tcp://127.0.0.1:6334"]
REFUSED = [
    *(("llm", {"base_url": url}, r"llm.base_url: .*REMOTE_ENDPOINTS=true.*ALLOWLIST") for url in ANOTHER_MACHINE),
    *(("llm", {"base_url": url}, r"llm\.base_url: .*write it like") for url in NO_HOST),
    *(("database", {"qdrant_url": url}, "qdrant_url must be an http or https .*gRPC") for url in NOT_REST),
]


@pytest.mark.parametrize(("section", "values", "message"), REFUSED)
def test_an_endpoint_that_cannot_be_used_is_refused_with_the_remedy(section, values, message):
    with pytest.raises(ConfigurationError, match=message):
        Settings(**{section: values})


# ---- copies


def test_a_copy_has_the_fields_replaced_and_all_the_others_as_they_were(monkeypatch):
    monkeypatch.setenv("DOCMIND_LLM__API_KEY", "sk-secret")
    monkeypatch.setenv("DOCMIND_AGENTS__MAX_RETRIES", "4")
    settings = Settings(llm={"model": "qwen"})
    monkeypatch.delenv("DOCMIND_LLM__API_KEY")
    monkeypatch.setenv("DOCMIND_AGENTS__MAX_RETRIES", "7")
    copy = settings.replaced(agents={"decision_timeout": 2})
    assert copy.agents.decision_timeout == 2.0
    assert copy.agents.max_retries == 4
    assert copy.llm == settings.llm
    assert settings.agents.decision_timeout == 20.0


@pytest.mark.parametrize(
    "sections",
    [
        {"agents": {"decision_timeout": -2}},
        {"agents": {"budget": 2}},
        {"agnets": {}},
        {"llm": {"base_url": "http://models.example/v1"}},
    ],
)
def test_a_copy_is_checked_as_the_original_was(sections):
    with pytest.raises(ConfigurationError, match=next(iter(sections))):
        Settings().replaced(**sections)
