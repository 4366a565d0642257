"""What the simulated search services answer, each in its own shape, from Tavily to Wikipedia.

What they find is the same for the same query, and quotes it, so that an answer can be built from it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from docmind_lab.services.endpoint_request import EndpointRequest

_KINDS = ("Overview", "Guide", "Reference", "Examples", "Questions and answers")
MOST_HITS = 20
"""Results of one query at the most."""


def hits_of(query: str, count: Any) -> list[dict[str, str]]:
    """Return as many results as are asked for, at most 20."""
    number = count if isinstance(count, int) and not isinstance(count, bool) else whole_number(count, 5)
    name = hashlib.sha256(query.encode()).hexdigest()[:8]
    made = []
    for place in range(max(0, min(number, MOST_HITS))):
        kind = _KINDS[place % len(_KINDS)]
        made.append(
            {
                "title": f"{kind}: {query}",
                "url": f"https://www.example.com/{name}/{place + 1}",
                "text": f"{kind} of {query}. Page {place + 1} says what it is, how it is used, and what to mind.",
            }
        )
    return made


def whole_number(text: Any, default: int) -> int:
    """Return the number that a text says; the default if it says none of up to five digits."""
    return int(text) if isinstance(text, str) and text.isdecimal() and len(text) < 6 else default


def tavily_search(request: EndpointRequest) -> Any:
    """Return results as Tavily's /search does."""
    given = request.fields
    query = str(given.get("query", ""))
    hits = hits_of(query, given.get("max_results", 5))
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
    """Return results as google.serper.dev does for /search, /news, /images, /places, /scholar and the others."""
    query = str(request.fields.get("q", ""))
    kind = request.path.strip("/") or "search"
    name, more = _SERPER_LISTS.get(kind, ("organic", {}))
    results = [
        {"title": hit["title"], "link": hit["url"], "snippet": hit["text"], "position": place + 1, **more}
        for place, hit in enumerate(hits_of(query, request.fields.get("num", 10)))
    ]
    return {"searchParameters": {"q": query, "type": kind}, name: results}


_SERPER_PLACE = {"address": "1 Example Road", "rating": 4.5, "ratingCount": 120, "latitude": 51.5, "longitude": -0.12}
_SERPER_LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "news": ("news", {"date": "2 hours ago", "source": "Example"}),
    "images": ("images", {"imageUrl": "https://www.example.com/1.png", "source": "Example"}),
    "places": ("places", _SERPER_PLACE),
    "maps": ("places", _SERPER_PLACE),
    "scholar": ("organic", {"publicationInfo": "A Example - Journal, 2025", "year": 2025, "citedBy": 12}),
    "shopping": ("shopping", {"price": "$18.00", "source": "Example", "rating": 4.5}),
    "videos": ("videos", {"duration": "5:00", "source": "Example"}),
}


def serpapi(request: EndpointRequest) -> Any:
    """Return results as serpapi.com/search and searchapi.io do, for Google's search, news, places, travel and shops."""
    given = request.fields
    engine = str(given.get("engine", "google"))
    query = str(given.get("q", given.get("query", given.get("search_query", ""))))
    made: dict[str, Any] = {
        "search_metadata": {"status": "Success"},
        "search_parameters": {"engine": engine, "q": query},
    }
    if engine in _SERPAPI_TRAVEL:
        return made | _SERPAPI_TRAVEL[engine](request)
    name, more = _SERPAPI_LISTS.get(engine, ("organic_results", {}))
    results = [
        {"position": place + 1, "title": hit["title"], "link": hit["url"], "snippet": hit["text"], "source": "Example"}
        | more
        for place, hit in enumerate(hits_of(query, given.get("num", 10)))
    ]
    return made | {name: results}


_PLACE: dict[str, Any] = {
    "address": "1 Example Road",
    "rating": 4.5,
    "reviews": 120,
    "gps_coordinates": {"latitude": 51.5, "longitude": -0.12},
}
_SERPAPI_LISTS: dict[str, tuple[str, dict[str, Any]]] = {
    "google_news": ("news_results", {"date": "01/01/2026, 12:00 PM, +0000 UTC", "source": {"name": "Example"}}),
    "google_maps": ("local_results", _PLACE),
    "google_local": ("local_results", _PLACE),
    "google_images": ("images_results", {"original": "https://www.example.com/1.png"}),
    "google_shopping": ("shopping_results", {"price": "$18.00", "extracted_price": 18.0, "rating": 4.5}),
    "google_jobs": ("jobs_results", {"company_name": "Example Ltd", "location": "Example City", "via": "Example"}),
    "google_scholar": ("organic_results", {"publication_info": {"summary": "A Example - Journal, 2025"}}),
    "youtube": ("video_results", {"length": "5:00", "channel": {"name": "Example"}, "views": 1_000}),
}


def _flights(request: EndpointRequest) -> dict[str, Any]:
    given = request.fields
    day = given.get("outbound_date", "2026-01-02")
    leg = {
        "departure_airport": {"name": "Example Airport", "id": given.get("departure_id", ""), "time": f"{day} 09:00"},
        "arrival_airport": {"name": "Example Airport", "id": given.get("arrival_id", ""), "time": f"{day} 11:30"},
        "duration": 150,
        "airline": "Example Air",
        "flight_number": "XX 101",
        "travel_class": "Economy",
    }
    flight = {"flights": [leg], "layovers": [], "total_duration": 150, "price": 180, "type": "Round trip"}
    return {"best_flights": [flight], "other_flights": [flight | {"price": 240}]}


def _hotels(request: EndpointRequest) -> dict[str, Any]:
    rate = {"lowest": "$90", "extracted_lowest": 90}
    about = {
        "type": "hotel",
        "overall_rating": 4.2,
        "reviews": 120,
        "hotel_class": "4-star hotel",
        "amenities": ["Wi-Fi"],
    }
    place = {"gps_coordinates": _PLACE["gps_coordinates"], "link": "https://www.example.com/hotel"}
    return {"properties": [{"name": "Example Hotel", "rate_per_night": rate, "total_rate": rate, **about, **place}]}


_SERPAPI_TRAVEL = {"google_flights": _flights, "google_hotels": _hotels}


def google_custom_search(request: EndpointRequest) -> Any:
    """Return results as Google's programmable search does."""
    query = str(request.fields.get("q", ""))
    hits = hits_of(query, request.fields.get("num", 10))
    items = [{"title": hit["title"], "link": hit["url"], "snippet": hit["text"]} for hit in hits]
    return {"kind": "customsearch#search", "searchInformation": {"totalResults": str(len(items))}, "items": items}


def exa(request: EndpointRequest) -> Any:
    """Return results, or the contents of pages, as Exa's /search and /contents do."""
    given = request.fields
    query = str(given.get("query", ""))
    hits = hits_of(query, given.get("numResults", 10))
    if "urls" in given or "ids" in given:
        urls = [str(url) for url in given.get("urls") or given.get("ids") or ()]
        hits = [{"title": url, "url": url, "text": f"The text of the page at {url}."} for url in urls]
    results = [
        {"id": hit["url"], "url": hit["url"], "title": hit["title"], "text": hit["text"], "highlights": [hit["text"]]}
        for hit in hits
    ]
    return {"requestId": hashlib.sha256(query.encode()).hexdigest()[:16], "results": results}


def brave(request: EndpointRequest) -> Any:
    """Return results as Brave's /res/v1/web/search does."""
    query = str(request.fields.get("q", ""))
    hits = hits_of(query, request.fields.get("count", 10))
    results = [{"title": hit["title"], "url": hit["url"], "description": hit["text"]} for hit in hits]
    return {"type": "search", "query": {"original": query}, "web": {"type": "search", "results": results}}


def wikipedia(request: EndpointRequest) -> Any:
    """Return search results, extracts or page information as the API of Wikipedia does."""
    given = request.fields
    if given.get("list") == "search" or given.get("action") == "opensearch":
        query = str(given.get("srsearch", given.get("search", "")))
        count = whole_number(given.get("srlimit", given.get("limit")), 3)
        titles = [query if place == 0 else f"{query} ({place + 1})" for place in range(min(count, MOST_HITS))]
        if given.get("action") == "opensearch":
            urls = [f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}" for title in titles]
            return [query, titles, ["" for _ in titles], urls]
        found = [{"ns": 0, "title": title, "pageid": _page_id(title), "snippet": title} for title in titles]
        # Of the facts about a search, only those that are asked for; there is never another spelling to suggest.
        facts = {"totalhits": len(found)} if "totalhits" in str(given.get("srinfo", "totalhits")) else {}
        return {"batchcomplete": "", "query": {"searchinfo": facts, "search": found}}
    title = str(given.get("titles", "")) or f"Page {given.get('pageids', '')}"
    page_id = _page_id(title) if given.get("titles") else whole_number(given.get("pageids"), 1)
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


def encyclopedia_summary(request: EndpointRequest) -> Any:
    """Return the summary of a page as Wikipedia's REST interface does."""
    title = request.path.rpartition("/")[2].replace("_", " ")
    said = f"{title} is a subject of this encyclopedia."
    address = f"https://{request.host}/wiki/{title.replace(' ', '_')}"
    page = {"title": title, "extract": said, "description": said, "type": "standard", "lang": "en"}
    return {**page, "content_urls": {kind: {"page": address} for kind in ("desktop", "mobile")}}


def news(request: EndpointRequest) -> Any:
    """Return articles as newsapi.org does."""
    hits = hits_of(str(request.query.get("q") or request.query.get("category") or "news"), 5)
    made = [
        {
            "source": {"id": None, "name": "Example"},
            "author": "Example",
            "title": hit["title"],
            "description": hit["text"],
            "url": hit["url"],
            "publishedAt": "2026-01-01T12:00:00Z",
            "content": hit["text"],
        }
        for hit in hits
    ]
    return {"status": "ok", "totalResults": len(made), "articles": made}


def firecrawl(request: EndpointRequest) -> Any:
    """Return a page, or the results of a search, as api.firecrawl.dev does."""
    if request.path.endswith("/search"):
        hits = hits_of(str(request.json.get("query", "")), 5)
        found = [{"title": hit["title"], "url": hit["url"], "description": hit["text"]} for hit in hits]
        return {"success": True, "data": found if "/v1/" in request.path else {"web": found}}
    address = str(request.json.get("url", ""))
    about = {"title": address, "sourceURL": address, "statusCode": 200}
    return {"success": True, "data": {"markdown": f"# {address}\n\nThe text of this page.", "metadata": about}}
