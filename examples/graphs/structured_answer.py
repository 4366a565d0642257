"""An agent whose answer is an object: text with sources and a confidence."""

from typing import Literal

from knowledge import lookup
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field


class Answer(BaseModel):
    """The answer to the user's question."""

    text: str = Field(description="The answer in one or two sentences", min_length=1)
    confidence: Literal["low", "medium", "high"]
    sources: list[str] = Field(description="Names of the entries that were looked up", max_length=5)
    year: int | None = Field(default=None, description="The year in question, if there is one", ge=1000, le=2100)


graph = create_agent(ChatOpenAI(model="gpt-4.1-mini"), [lookup], response_format=Answer)
