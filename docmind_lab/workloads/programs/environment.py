"""Environment variables of a program: where the simulated services are, and nothing that leaves the machine."""

from __future__ import annotations

from typing import Final

from docmind_lab.services.openai_service import MODEL_NAME

# A port that nothing listens on: what tries to leave the machine fails at once.
_NOWHERE = "http://127.0.0.1:9"
SILENT: Final = {
    "AGNO_TELEMETRY": "false",
    "ANONYMIZED_TELEMETRY": "False",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "MASTRA_TELEMETRY_DISABLED": "1",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), _NOWHERE),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}
"""Variables with which frameworks send nothing of what they do."""

ANY_KEY: Final = "none-is-needed"


def service_variables(root: str) -> dict[str, str]:
    """Return the variables by which clients of models find the simulated services, with a key that is none.

    root: address in front of `/v1`, without a slash at its end.
    """
    keys = ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    return {
        **dict.fromkeys(keys, ANY_KEY),
        "OPENAI_BASE_URL": f"{root}/v1",
        "OPENAI_API_BASE": f"{root}/v1",
        "OPENAI_MODEL": MODEL_NAME,
        "AZURE_OPENAI_ENDPOINT": root,
        "ANTHROPIC_BASE_URL": root,
        "GOOGLE_GEMINI_BASE_URL": root,
        "OLLAMA_HOST": root,
        "QDRANT_URL": root,
    }
