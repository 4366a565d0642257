"""The functional API: tasks side by side below an entrypoint."""

from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint, task

model = ChatOpenAI(model="gpt-4.1-mini")


@task
def outline(topic: str) -> str:
    return model.invoke(f"Outline an essay about {topic}").content


@task
def write_part(outline_text: str, part: str) -> str:
    return model.invoke(f"Write the {part} of: {outline_text}").content


@entrypoint()
def graph(topic: str) -> str:
    plan = outline(topic).result()
    parts = [write_part(plan, part) for part in ("beginning", "middle", "end")]
    return "\n\n".join(part.result() for part in parts)
