"""An agent on Anthropic's API, with tools and a system prompt."""

from knowledge import lookup, weather_at
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic

graph = create_agent(
    ChatAnthropic(model="claude-sonnet-4-5", max_tokens=1024),
    [lookup, weather_at],
    system_prompt="You answer questions about harbours. Use your tools.",
)
