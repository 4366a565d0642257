"""The simulated search services: their endpoints, and what each answers in its own shape.

What they find is the same for the same query, and quotes it, so that an answer can be built from it.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from docmind_lab.services.endpoint_shape import Endpoint, EndpointRequest

_KINDS = ("Overview", "Guide", "Reference", "Examples", "Questions and answers")
_MOST_HITS = 20
"""Results of one query at the most."""


def tavily_search(request: EndpointRequest) -> Any:
    """Return results as Tavily's /search does: as many as are asked for, at most 20."""
    fields = request.fields
    query = str(fields.get("query", ""))
    name = hashlib.sha256(query.encode()).hexdigest()[:8]
    results = []
    for place in range(min(_whole_number(fields.get("max_results"), 5), _MOST_HITS)):
        kind = _KINDS[place % len(_KINDS)]
        text = f"{kind} of {query}. Page {place + 1} says what it is, how it is used, and what to mind."
        results.append(
            {
                "title": f"{kind}: {query}",
                "url": f"https://www.example.com/{name}/{place + 1}",
                "content": text,
                "score": round(0.95 - 0.05 * place, 2),
                "raw_content": text if fields.get("include_raw_content") else None,
            }
        )
    return {
        "query": query,
        "follow_up_questions": None,
        "answer": results[0]["content"] if results and fields.get("include_answer") else None,
        "images": [],
        "results": results,
        "response_time": 0.5,
    }


def _whole_number(value: Any, default: int) -> int:
    """Return the number that a field says; the default if it says none of up to five digits."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 6 else default


def tavily_extract(request: EndpointRequest) -> Any:
    """Return the contents of pages as Tavily's /extract does."""
    urls: str | list[str] = request.fields.get("urls", [])
    each = [urls] if isinstance(urls, str) else urls
    results = [{"url": url, "raw_content": f"The text of the page at {url}.", "images": []} for url in each]
    return {"results": results, "failed_results": [], "response_time": 0.5}


def wikipedia(request: EndpointRequest) -> Any:
    """Return search results, extracts or page information as the API of Wikipedia does."""
    fields = request.fields
    if fields.get("list") == "search" or fields.get("action") == "opensearch":
        query = str(fields.get("srsearch", fields.get("search", "")))
        count = _whole_number(fields.get("srlimit", fields.get("limit")), 3)
        titles = [query if place == 0 else f"{query} ({place + 1})" for place in range(min(count, _MOST_HITS))]
        if fields.get("action") == "opensearch":
            urls = [f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}" for title in titles]
            return [query, titles, ["" for _ in titles], urls]
        hits = [{"ns": 0, "title": title, "pageid": _page_id(title), "snippet": title} for title in titles]
        # Of the facts about a search, only those that are asked for; there is never another spelling to suggest.
        facts = {"totalhits": len(hits)} if "totalhits" in str(fields.get("srinfo", "totalhits")) else {}
        return {"batchcomplete": "", "query": {"searchinfo": facts, "search": hits}}
    title = str(fields.get("titles", "")) or f"Page {fields.get('pageids', '')}"
    page_id = _page_id(title) if fields.get("titles") else _whole_number(fields.get("pageids"), 1)
    # Properties that are not asked for are absent, as are those that a page has not: one with pageprops would be taken
    # for a list of pages of the same name.
    properties: dict[str, dict[str, Any]] = {
        "extracts": {
            "extract": f"{title} is a subject of this encyclopedia. It is described by what it is and how it is used."
        },
        "info": {"fullurl": f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}"},
        "revisions": {"revisions": [{"revid": 1, "parentid": 0}]},
    }
    page: dict[str, Any] = {"pageid": page_id, "ns": 0, "title": title}
    for name in str(fields.get("prop", "")).split("|"):
        page |= properties.get(name, {})
    return {"batchcomplete": "", "query": {"pages": {str(page_id): page}}}


def _page_id(title: str) -> int:
    return int(hashlib.sha256(title.encode()).hexdigest()[:6], 16) + 1


_PAGE: Final = (
    "<!DOCTYPE html><html><head><title>{path}</title></head><body><main><h1>{path}</h1>"
    "<p>This page says what it is about, and what to mind.</p></main></body></html>"
)

_SERPER: Final = {
    "searchParameters": {"q": "{json.q}"},
    **{
        kind: [
            {"position": place + 1, "title": f"{title}: {{json.q}}", "link": f"https://www.example.com/{place + 1}"}
            | {"snippet": f"{title} of {{json.q}}: what it is, and how it is used."}
            for place, title in enumerate(_KINDS[:2])
        ]
        for kind in ("organic", "news")
    },
}
_BRAVE_RESULTS: Final = [
    {"title": f"{title}: {{query.q}}", "url": f"https://www.example.com/{place + 1}"}
    | {"description": f"{title} of {{query.q}}: what it is, and how it is used."}
    for place, title in enumerate(_KINDS[:2])
]

READY: Final[tuple[Endpoint, ...]] = (
    Endpoint("api.tavily.com", "/search", "POST", function=tavily_search),
    Endpoint("api.tavily.com", "/extract", "POST", function=tavily_extract),
    Endpoint("google.serper.dev", "/*", json=_SERPER, effect=False),
    Endpoint(
        "api.search.brave.com",
        "/res/v1/web/search",
        "GET",
        json={"type": "search", "web": {"type": "search", "results": _BRAVE_RESULTS}},
    ),
    Endpoint("*.wikipedia.org", "/w/api.php", function=wikipedia),
    # Pages that these name in their answers.
    Endpoint("*.wikipedia.org", "/wiki/*", "GET", text=_PAGE),
    Endpoint("www.example.com", "*", "GET", text=_PAGE),
)
"""Rows that are always there, after those of a user's file."""
