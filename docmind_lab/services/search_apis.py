"""What the simulated search services answer: Tavily, Serper, Brave and Wikipedia, each in its own shape.

What they find is the same for the same query, and quotes it, so that an answer can be built from it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docmind_lab.services.endpoints import EndpointRequest

_KINDS = ("Overview", "Guide", "Reference", "Examples", "Questions and answers")
_MOST = 20


def _hits(query: str, count: Any) -> list[dict[str, str]]:
    """Return as many results as are asked for, at most 20."""
    number = count if isinstance(count, int) and not isinstance(count, bool) else _whole(count, 5)
    name = hashlib.sha256(query.encode()).hexdigest()[:8]
    made = []
    for place in range(max(0, min(number, _MOST))):
        kind = _KINDS[place % len(_KINDS)]
        made.append(
            {
                "title": f"{kind}: {query}",
                "url": f"https://www.example.com/{name}/{place + 1}",
                "text": f"{kind} of {query}. Page {place + 1} says what it is, how it is used, and what to mind.",
            }
        )
    return made


def _whole(text: Any, default: int) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 6 else default


def tavily_search(request: EndpointRequest) -> Any:
    """Return results as Tavily's /search does."""
    given = request.fields
    query = str(given.get("query", ""))
    hits = _hits(query, given.get("max_results", 5))
    results = [
        {
            "title": hit["title"],
            "url": hit["url"],
            "content": hit["text"],
            "score": round(0.95 - 0.05 * place, 2),
            "raw_content": hit["text"] if given.get("include_raw_content") else None,
        }
        for place, hit in enumerate(hits)
    ]
    answer = hits[0]["text"] if hits and given.get("include_answer") else None
    return {
        "query": query,
        "follow_up_questions": None,
        "answer": answer,
        "images": [],
        "results": results,
        "response_time": 0.5,
    }


def tavily_extract(request: EndpointRequest) -> Any:
    """Return the contents of pages as Tavily's /extract does."""
    urls: str | list[str] = request.fields.get("urls", [])
    each = [urls] if isinstance(urls, str) else urls
    results = [{"url": url, "raw_content": f"The text of the page at {url}.", "images": []} for url in each]
    return {"results": results, "failed_results": [], "response_time": 0.5}


def serper(request: EndpointRequest) -> Any:
    """Return results as google.serper.dev/search does."""
    query = str(request.fields.get("q", ""))
    hits = _hits(query, request.fields.get("num", 10))
    organic = [
        {"title": hit["title"], "link": hit["url"], "snippet": hit["text"], "position": place + 1}
        for place, hit in enumerate(hits)
    ]
    return {"searchParameters": {"q": query, "type": "search"}, "organic": organic}


def brave(request: EndpointRequest) -> Any:
    """Return results as Brave's /res/v1/web/search does."""
    query = str(request.fields.get("q", ""))
    hits = _hits(query, request.fields.get("count", 10))
    results = [{"title": hit["title"], "url": hit["url"], "description": hit["text"]} for hit in hits]
    return {"type": "search", "query": {"original": query}, "web": {"type": "search", "results": results}}


def wikipedia(request: EndpointRequest) -> Any:
    """Return search results, extracts or page information as the API of Wikipedia does."""
    given = request.fields
    if given.get("list") == "search" or given.get("action") == "opensearch":
        query = str(given.get("srsearch", given.get("search", "")))
        count = _whole(given.get("srlimit", given.get("limit")), 3)
        titles = [query if place == 0 else f"{query} ({place + 1})" for place in range(min(count, _MOST))]
        if given.get("action") == "opensearch":
            urls = [f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}" for title in titles]
            return [query, titles, ["" for _ in titles], urls]
        found = [{"ns": 0, "title": title, "pageid": _page_id(title), "snippet": title} for title in titles]
        # Of the facts about a search, only those that are asked for; there is never another spelling to suggest.
        facts = {"totalhits": len(found)} if "totalhits" in str(given.get("srinfo", "totalhits")) else {}
        return {"batchcomplete": "", "query": {"searchinfo": facts, "search": found}}
    title = str(given.get("titles", "")) or f"Page {given.get('pageids', '')}"
    page_id = _page_id(title) if given.get("titles") else _whole(given.get("pageids"), 1)
    # Properties that are not asked for are absent, as are those that a page has not: one with pageprops would be taken
    # for a list of pages of the same name.
    known: dict[str, dict[str, Any]] = {
        "extracts": {
            "extract": f"{title} is a subject of this encyclopedia. It is described by what it is and how it is used."
        },
        "info": {"fullurl": f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}"},
        "revisions": {"revisions": [{"revid": 1, "parentid": 0}]},
    }
    page: dict[str, Any] = {"pageid": page_id, "ns": 0, "title": title}
    for name in str(given.get("prop", "")).split("|"):
        page |= known.get(name, {})
    return {"batchcomplete": "", "query": {"pages": {str(page_id): page}}}


def _page_id(title: str) -> int:
    return int(hashlib.sha256(title.encode()).hexdigest()[:6], 16) + 1
