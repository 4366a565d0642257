"""What the graphs of this folder know about harbours, and the tools that say it."""

from langchain_core.tools import tool

ENTRIES = {
    "fairhaven": "Fairhaven is the largest harbour. It is 14 m deep, and 620 people work there.",
    "oldport": "Oldport is the oldest harbour, built in 1732. It is 6 m deep, and 180 people work there.",
    "tug": "A tug pulls and pushes large ships, which cannot turn in a harbour by themselves.",
    "pilot": "A pilot knows the harbour, comes on board of a ship and leads her to her berth.",
    "lighthouse": "A lighthouse shows ships the way at night. The one at Oldport has had no keeper since 1987.",
}


@tool
def lookup(query: str) -> str:
    """Look up what is known about harbours, ships and the people who work there."""
    words = set(query.casefold().split())
    return max(ENTRIES.values(), key=lambda entry: len(words & set(entry.casefold().split())))


@tool
def weather_at(harbour: str) -> str:
    """Return the weather at a harbour."""
    return f"Wind from the west at {harbour}, 14 knots, clear."


@tool
def tide_at(harbour: str, hour: int) -> str:
    """Return the height of the tide at a harbour, at an hour from 0 to 23."""
    return f"{2.1 + (hour % 12) / 10:.1f} m at {harbour} at {hour}:00."


@tool
def book_berth(harbour: str, nights: int) -> str:
    """Book a berth for some nights."""
    return f"A berth at {harbour} is booked for {nights} nights."


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


@tool
def multiply(a: float, b: float) -> float:
    """Multiply two numbers."""
    return a * b
