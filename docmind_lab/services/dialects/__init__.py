"""The dialects in which a model is asked: one conversation has one reply, one latency and one count of tokens in all.

dialect_exchange.py    what they are translated to and from: a chat payload, an answer, a refusal
openai_chat.py         OpenAI's chat completions and embeddings, and whoever speaks them: Azure, OpenRouter, vLLM
openai_responses.py    OpenAI's Responses API
anthropic_messages.py  Anthropic's messages
gemini.py              Google's Gemini
ollama.py              Ollama's own interface
routing.py             which dialect a request speaks
vectors.py             the embedding of a text
"""

from docmind_lab.services.dialects.dialect_exchange import Answer, Dialect, EmbeddingRequest, Refusal, Route
from docmind_lab.services.dialects.routing import Dialects, asks_a_model, is_answered

__all__ = [
    "Answer",
    "Dialect",
    "Dialects",
    "EmbeddingRequest",
    "Refusal",
    "Route",
    "asks_a_model",
    "is_answered",
]
