"""The official client of each provider is answered by the served model, in the same words and as many tokens."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import anthropic
import ollama
import openai
import pytest
from dialect_clients import CLIENTS, MODEL, QUESTION, RESULT, SHAPE, TOOL, Asked, gemini
from doc_pages import section_of
from pydantic import BaseModel, Field
from service_doors import Here

from docmind_lab.services.faults import Fault

ANSWER = "The quoll hunts at night in the eucalyptus forest. [c1]"
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
DIALECTS = pytest.mark.parametrize("dialect", CLIENTS)


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    with contextlib.closing(Here.of(profile="typical/100")) as here:
        yield here.addresses.openai_base_url.removesuffix("/v1")


CALLS, ANSWERS, SHAPED = Asked(has_tool=True), Asked(has_tool=True, has_result=True), Asked(shape=SHAPE)


@pytest.mark.parametrize("asked", [CALLS, ANSWERS, SHAPED], ids=["tool", "answer", "schema"])
@STREAMS
@DIALECTS
def test_one_conversation_has_one_reply_and_as_many_tokens_in_every_dialect(
    root: str, dialect: str, stream: bool, asked: Asked
) -> None:
    said = CLIENTS[dialect].sync(root, replace(asked, stream=stream))
    assert said == CLIENTS["chat"].sync(root, asked)
    assert all(said.tokens)
    if asked is SHAPED:
        require_of_shape(json.loads(said.text))
    else:
        assert (said.text, said.calls) == ((ANSWER, []) if asked is ANSWERS else ("", [(TOOL, {"query": QUESTION})]))


def require_of_shape(value: Any) -> None:
    import jsonschema  # takes two seconds in each process that only collects the tests

    jsonschema.validate(value, SHAPE)


@pytest.mark.parametrize(("status", "fault"), [(429, "rate_limit=7"), (500, "http_500")])
@DIALECTS
def test_an_error_is_the_clients_own(serve_here: Callable[..., Here], dialect: str, status: int, fault: str) -> None:
    root = serve_here(faults=(Fault.parse(f"{fault}:*"),)).addresses.openai_base_url.removesuffix("/v1")
    with pytest.raises(CLIENTS[dialect].errors[status]) as caught:
        CLIENTS[dialect].sync(root, Asked())
    code = getattr(caught.value, "status_code", None) or getattr(caught.value, "code", None)
    assert code == status
    response = getattr(caught.value, "response", None)
    if status == 429 and response is not None:
        assert response.headers["retry-after"] == "7"


# ---- OpenAI


class Animal(BaseModel):
    name: str
    legs: int = Field(ge=2, le=8)
    diet: list[str] = Field(min_length=1)


@pytest.fixture
def client(root: str) -> Any:
    with openai.OpenAI(base_url=f"{root}/v1", api_key="unused") as made:
        yield made


def test_openai_parses_structured_output_of_chat_and_of_responses(client: openai.OpenAI) -> None:
    asked: Any = [{"role": "user", "content": QUESTION}]
    chat = client.chat.completions.parse(model=MODEL, messages=asked, response_format=Animal)
    response = client.responses.parse(model=MODEL, input=asked, text_format=Animal)
    assert isinstance(chat.choices[0].message.parsed, Animal)
    assert chat.choices[0].message.parsed == response.output_parsed


def test_a_response_is_streamed_through_openais_own_accumulator(client: openai.OpenAI) -> None:
    with client.responses.stream(model=MODEL, input=QUESTION, text_format=Animal) as stream:
        kinds = [event.type for event in stream]
        assert isinstance(stream.get_final_response().output_parsed, Animal)
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


def test_a_response_goes_on_from_an_earlier_one(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "name": TOOL, "parameters": {"type": "object", "properties": {"q": {}}}}]
    first = client.responses.create(model=MODEL, input=QUESTION, tools=tools)
    call: Any = first.output[0]
    result: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT}]
    second = client.responses.create(model=MODEL, previous_response_id=first.id, input=result, tools=tools)
    assert second.output_text.startswith("The quoll hunts at night")
    assert second.previous_response_id == first.id


def test_an_earlier_response_that_is_not_known_is_a_bad_request(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="resp_9"):
        client.responses.create(model=MODEL, input="Why?", previous_response_id="resp_9")


def test_a_response_that_is_cut_is_incomplete(client: openai.OpenAI) -> None:
    cut = client.responses.create(model=MODEL, input=QUESTION, max_output_tokens=3)
    assert (cut.status, cut.usage.output_tokens if cut.usage else 0) == ("incomplete", 3)
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"


def test_azures_client_is_answered_at_its_deployment(root: str) -> None:
    azure = openai.AzureOpenAI(azure_endpoint=root, api_version="2024-10-21", api_key="unused")
    with azure:
        reply = azure.chat.completions.create(model="my-deployment", messages=[{"role": "user", "content": "Why?"}])
        assert reply.model == "my-deployment"
        assert len(azure.embeddings.create(model="my-deployment", input="x").data[0].embedding) == 1536


# ---- embeddings


def near(first: list[float], second: list[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_embeddings_are_near_for_near_texts(client: openai.OpenAI, encoding: Any) -> None:
    texts = ["The quoll hunts at night", "At night the quolls are hunting", "A kiln is fired slowly"]
    data = client.embeddings.create(model=MODEL, input=texts, dimensions=64, encoding_format=encoding).data
    # The client decodes only what it asked for by itself.
    vectors = [each.embedding for each in client.embeddings.create(model=MODEL, input=texts, dimensions=64).data]
    assert len(data) == 3
    assert [len(vector) for vector in vectors] == [64, 64, 64]
    assert near(vectors[0], vectors[0]) == pytest.approx(1.0, abs=1e-5)
    assert near(vectors[0], vectors[1]) > 0.8 > 0.4 > near(vectors[0], vectors[2])


def test_token_ids_are_embedded_as_texts_are(client: openai.OpenAI) -> None:
    tokens = [[1, 2, 3, 4], [1, 2, 3, 5], [7, 8, 9, 6]]
    vectors = [each.embedding for each in client.embeddings.create(model=MODEL, input=tokens).data]
    assert near(vectors[0], vectors[1]) > 0.6 > near(vectors[0], vectors[2])


@pytest.mark.parametrize(("model", "size"), [("text-embedding-3-large", 3072), ("unheard-of", 1536)])
def test_a_vector_is_as_long_as_its_model_makes_it(client: openai.OpenAI, model: str, size: int) -> None:
    assert len(client.embeddings.create(model=model, input="x").data[0].embedding) == size


def test_a_text_has_the_same_vector_in_every_dialect(root: str, client: openai.OpenAI) -> None:
    openais = client.embeddings.create(model=MODEL, input="The quoll hunts", dimensions=32).data[0].embedding
    with ollama.Client(root) as client_of_ollama:
        ollamas = client_of_ollama.embed(model=MODEL, input="The quoll hunts", dimensions=32).embeddings[0]
    with gemini(root) as google:
        config: Any = {"output_dimensionality": 32}
        found = google.models.embed_content(model=MODEL, contents="The quoll hunts", config=config).embeddings
    assert list(ollamas) == pytest.approx(openais)
    assert found is not None
    assert found[0].values == pytest.approx(openais)


def test_input_that_cannot_be_embedded_is_a_bad_request_that_names_it(client: openai.OpenAI) -> None:
    for wrong in ([], [{}], [1.5]):
        with pytest.raises(openai.BadRequestError, match="input"):
            client.embeddings.create(model=MODEL, input=wrong)  # type: ignore[arg-type]
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model=MODEL, input="x", dimensions=0)


# ---- Anthropic


@pytest.fixture
def claude(root: str) -> Any:
    with anthropic.Anthropic(base_url=root, api_key="unused") as made:
        yield made


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "note"}])
def test_anthropic_is_called_with_the_tool_that_it_must_call(claude: anthropic.Anthropic, choice: Any) -> None:
    tools: Any = [{"name": "note", "input_schema": SHAPE}]
    asked: Any = [{"role": "user", "content": QUESTION}]
    reply = claude.messages.create(model=MODEL, max_tokens=99, messages=asked, tools=tools, tool_choice=choice)
    (block,) = reply.content
    assert block.type == "tool_use"
    assert reply.stop_reason == "tool_use"
    require_of_shape(block.input)


def test_anthropics_stream_helper_gathers_the_message(claude: anthropic.Anthropic) -> None:
    system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    asked: Any = [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    with claude.messages.stream(model=MODEL, max_tokens=99, system=system, messages=asked) as stream:
        text = "".join(stream.text_stream)
        assert stream.get_final_text() == text != ""


def test_the_clients_that_count_tokens_are_told_their_number(claude: anthropic.Anthropic, root: str) -> None:
    counted = claude.messages.count_tokens(model=MODEL, messages=[{"role": "user", "content": "Why is it so?"}])
    with gemini(root) as google:
        assert google.models.count_tokens(model=MODEL, contents="Why is it so?").total_tokens == 5
    assert counted.input_tokens == 5


# ---- Gemini and Ollama


def test_gemini_parses_a_schema_in_its_own_notation(root: str) -> None:
    config: Any = {"response_mime_type": "application/json", "response_schema": Animal}
    with gemini(root) as google:
        reply = google.models.generate_content(model=MODEL, contents=QUESTION, config=config)
    assert isinstance(reply.parsed, Animal)


def test_gemini_calls_a_python_function_by_itself(root: str) -> None:
    def look_up(query: str) -> str:
        """Look something up."""
        return RESULT

    with gemini(root) as google:
        config: Any = {"tools": [look_up]}
        reply = google.models.generate_content(model=MODEL, contents=QUESTION, config=config)
    assert (reply.text or "").startswith("The quoll hunts at night")


def test_ollama_generates_lists_and_describes(root: str) -> None:
    with ollama.Client(root) as client:
        assert client.generate(model=MODEL, prompt="Why?").response
        assert "".join(part.response for part in client.generate(model=MODEL, prompt="Why?", stream=True))
        assert [model.model for model in client.list().models] == ["docmind-scripted"]
        assert "tools" in (client.show(MODEL).capabilities or ())
        said = client.chat(model=MODEL, messages=[{"role": "user", "content": "Why?"}], options={"num_predict": 2})
        assert (said.done_reason, said.eval_count) == ("length", 2)


# ---- the snippets of docs/measurements.md

PAGE = section_of("measurements.md", "The simulated model, for your own clients")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_there_is_a_snippet_for_each_client() -> None:
    imported = re.findall(r"^(?:import|from) (\w+)", "\n".join(SNIPPETS), re.MULTILINE)
    assert {"openai", "anthropic", "google", "ollama"} <= set(imported)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_a_snippet_is_answered(snippet: str, root: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(snippet.replace("http://127.0.0.1:8000", root), "docs/measurements.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == snippet.count("print(")
    assert all(printed)
