"""The simulated search services, as rows of the table of endpoints. What they find quotes the query.

An answer has what its service's clients read, whatever a request asks for: a page of Wikipedia has each property. One
with pageprops would be taken for a list of pages of the same name, so it has none.
"""

from __future__ import annotations

from typing import Any, Final

from docmind_lab.services.endpoint_shape import Endpoint

_KINDS: Final = ("Overview", "Guide")


def _hits(query: str, address: str, content: str, **others: Any) -> list[dict[str, Any]]:
    """Return two results of a query. address, content: the names of these fields."""
    return [
        {
            "title": f"{kind}: {query}",
            address: f"https://www.example.com/{place}",
            content: f"{kind} of {query}: what it is, how it is used, and what to mind.",
            **others,
        }
        for place, kind in enumerate(_KINDS, start=1)
    ]


_PAGE: Final = (
    "<!DOCTYPE html><html><head><title>{path}</title></head><body><main><h1>{path}</h1>"
    "<p>This page says what it is about, and what to mind.</p></main></body></html>"
)
_TAVILY: Final = {
    "query": "{json.query}",
    "follow_up_questions": None,
    "answer": "Overview of {json.query}: what it is, how it is used, and what to mind.",
    "images": [],
    "results": _hits("{json.query}", "url", "content", score=0.9, raw_content=None),
    "response_time": 0.5,
}
_TAVILY_PAGE: Final = {
    "results": [{"url": "{json.urls.0}", "raw_content": "The text of the page at {json.urls.0}.", "images": []}],
    "failed_results": [],
    "response_time": 0.5,
}
_SERPER: Final = {
    "searchParameters": {"q": "{json.q}"},
    **{kind: _hits("{json.q}", "link", "snippet") for kind in ("organic", "news")},
}
_BRAVE: Final = {"type": "search", "web": {"type": "search", "results": _hits("{query.q}", "url", "description")}}
_WIKIPEDIA: Final = {
    "batchcomplete": "",
    "query": {
        "searchinfo": {},
        "search": [{"ns": 0, "title": "{query.srsearch}", "pageid": 1, "snippet": "{query.srsearch}"}],
        "pages": {
            "1": {
                "pageid": 1,
                "ns": 0,
                "title": "{query.titles}",
                "extract": "{query.titles} is a subject of this encyclopedia: what it is, and how it is used.",
                "fullurl": "https://en.wikipedia.org/wiki/{query.titles}",
                "revisions": [{"revid": 1, "parentid": 0}],
            }
        },
    },
}

READY: Final[tuple[Endpoint, ...]] = (
    Endpoint("api.tavily.com", "/search", "POST", json=_TAVILY),
    Endpoint("api.tavily.com", "/extract", "POST", json=_TAVILY_PAGE),
    Endpoint("google.serper.dev", "/*", json=_SERPER, effect=False),
    Endpoint("api.search.brave.com", "/res/v1/web/search", "GET", json=_BRAVE),
    Endpoint("*.wikipedia.org", "/w/api.php", json=_WIKIPEDIA),
    # Pages that these name in their answers.
    Endpoint("*.wikipedia.org", "/wiki/*", "GET", text=_PAGE),
    Endpoint("www.example.com", "*", "GET", text=_PAGE),
)
"""Rows that are always there, after those of a user's file."""
