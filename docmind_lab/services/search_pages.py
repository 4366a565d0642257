"""Pages that simulated web sites answer: result pages of search engines that need no key, and pages to read.

A result page has the structure that libraries read results from, such as ddgs: its headings, links and snippets.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any, Final

from docmind_lab.services.endpoint_request import EndpointRequest
from docmind_lab.services.search_apis import hits_of

_RESULTS: Final = 10
_QUERY_FIELDS: Final = ("q", "query", "p", "text")
_LAYOUTS: Final = {
    "duckduckgo.com": '<div class="result"><div class="links_main result__body"><h2 class="result__title">'
    '<a class="result__a" href="{url}">{title}</a></h2><a class="result__snippet" href="{url}">{text}</a></div></div>',
    "lite.duckduckgo.com": '<tr><td><a class="result-link" href="{url}">{title}</a></td></tr>'
    '<tr><td class="result-snippet">{text}</td></tr><tr><td>{url}</td></tr><tr><td></td></tr>',
    "bing.com": '<li class="b_algo"><h2><a href="{url}">{title}</a></h2><p>{text}</p></li>',
    "brave.com": '<div class="snippet" data-type="web"><a href="{url}"><div class="title">{title}</div></a>'
    '<div class="snippet"><div class="content">{text}</div></div></div>',
    "google.com": '<div><div><a href="/url?q={url}&amp;sa=U"><span>{title}</span></a></div>'
    "<div><table><tr><td>{text}</td></tr></table></div></div>",
    "mojeek.com": '<ul class="results-standard"><li><h2><a href="{url}">{title}</a></h2>'
    '<p class="s">{text}</p></li></ul>',
    "startpage.com": '<div class="result css-1"><a href="{url}"><h2>{title}</h2></a><p>{text}</p></div>',
    "yahoo.com": '<div class="relsrch"><div class="compTitle"><h3><a href="{url}">{title}</a></h3></div>'
    '<div class="compText">{text}</div></div>',
    "news.search.yahoo.com": '<li><h4><a href="{url}">{title}</a></h4><span class="s-time">2 hours ago</span>'
    '<span class="s-source">Example</span><p>{text}</p><a href="{url}">more</a></li>',
    "www.bing.com/news": '<div class="newsitem" data-title="{title}" url="{url}" data-author="Example">'
    '<span aria-label="2 hours ago">2h</span><div class="snippet">{text}</div></div>',
    "www.bing.com/images": '<div><div class="imgpt"><a class="iusc" '
    'm="{{&quot;t&quot;: &quot;{title}&quot;, &quot;murl&quot;: &quot;{url}.png&quot;, '
    '&quot;turl&quot;: &quot;{url}.png&quot;, &quot;purl&quot;: &quot;{url}&quot;}}"></a></div>'
    '<div class="infopt"><div class="lnkw"><a>Example</a></div></div></div>',
    "yandex.com": '<li class="serp-item"><h3><a href="{url}">{title}</a></h3><div class="text">{text}</div></li>',
}


def _query(request: EndpointRequest) -> str:
    given = {**request.form, **request.query}
    return next((str(given[name]) for name in _QUERY_FIELDS if given.get(name)), "")


def result_page(request: EndpointRequest) -> Any:
    """Return the results of a search engine as its HTML page."""
    section = f"{request.host}/{request.path.split('/')[1]}"
    site = max((name for name in _LAYOUTS if request.host.endswith(name) or name == section), key=len)
    hits = hits_of(_query(request), _RESULTS)
    shown = "".join(_LAYOUTS[site].format(**{name: escape(text) for name, text in hit.items()}) for hit in hits)
    body = f"<table>{shown}</table>" if shown.startswith("<tr>") else shown
    head = f"<head><title>{escape(_query(request))}</title></head>"
    return f'<?xml version="1.0"?><html>{head}<body><div id="web">{body}</div></body></html>'


def duckduckgo(request: EndpointRequest) -> Any:
    """Return what duckduckgo.com answers below its search page: a key for scripts, or their news, images and videos."""
    query = _query(request)
    if not request.path.endswith(".js"):
        return (
            f'<html><head><title>{escape(query)}</title></head><body><script>vqd="4-1234567890"</script></body></html>'
        )
    results = [
        {
            "date": 1767225600,
            "title": hit["title"],
            "excerpt": hit["text"],
            "body": hit["text"],
            "description": hit["text"],
            "content": hit["url"],
            "url": hit["url"],
            "image": f"{hit['url']}.png",
            "thumbnail": f"{hit['url']}-small.png",
            "height": 480,
            "width": 640,
            "source": "Example",
            "publisher": "Example",
            "provider": "Example",
        }
        for hit in hits_of(query, _RESULTS)
    ]
    return {"query": query, "results": results}


def instant_answer(request: EndpointRequest) -> Any:
    """Return the instant answer of api.duckduckgo.com."""
    query = _query(request)
    first, *others = hits_of(query, 4)
    topics = [{"FirstURL": hit["url"], "Text": hit["text"], "Result": hit["text"]} for hit in others]
    return {
        "Heading": query,
        "Abstract": first["text"],
        "AbstractText": first["text"],
        "AbstractURL": first["url"],
        "AbstractSource": "Example",
        "Answer": "",
        "Definition": "",
        "Type": "A",
        "RelatedTopics": topics,
        "Results": [],
    }


def grokipedia(request: EndpointRequest) -> Any:
    """Return suggestions of Grokipedia."""
    query = _query(request)
    (hit,) = hits_of(query, 1)
    return {"results": [{"slug": query.replace(" ", "_"), "title": query, "snippet": hit["text"]}]}


def page(request: EndpointRequest) -> Any:
    """Return a page to read, about what its address says."""
    words = request.path.strip("/").rpartition("/")[2].rpartition(".")[0] or request.path.strip("/").rpartition("/")[2]
    subject = escape(words.replace("-", " ").replace("_", " ").strip() or request.host)
    said = [
        f"This page of {escape(request.host)} is about {subject}.",
        f"It says what {subject} is, and what it is used for.",
        f"An example shows {subject} at work, step by step.",
        f"At its end stands what to mind about {subject}.",
    ]
    paragraphs = "".join(f"<p>{sentence}</p>" for sentence in said)
    head = f'<head><meta charset="utf-8"><title>{subject}</title></head>'
    return (
        f"<!DOCTYPE html><html lang='en'>{head}<body><main><article class='post-content'>"
        f"<h1 class='post-title'>{subject}</h1>{paragraphs}</article></main></body></html>"
    )


def page_as_text(request: EndpointRequest) -> Any:
    """Return the text of a page as r.jina.ai does, whose path is the page's address."""
    address = request.path.lstrip("/")
    return f"Title: {address}\n\nURL Source: {address}\n\nMarkdown Content:\nThe text of the page at {address}.\n"


_PAGE_ENDINGS: Final = (".html", ".htm", ".php", ".aspx", ".shtml")
_STORY: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+){2,}", re.IGNORECASE)
_PAGE_HOSTS: Final = ("www.", "docs.", "blog.")


def is_page(method: str, host: str, path: str, query: str) -> bool:
    """Whether an address is a page's by its look: a site's root, a folder, HTML, a path of a web site, or a story.

    A story has a name of three words or more, such as /2024/01/how-tides-work.

    What has "api" in its host or its path is none: it would answer JSON.
    """
    names = [*host.split("."), *path.lower().split("/")]
    if method not in ("GET", "HEAD") or query or any(name.startswith(("api", "v1", "v2", "v3")) for name in names):
        return False
    if "." not in host or host.replace(".", "").isdigit():
        return False
    last = path.rpartition("/")[2]
    if not last or last.lower().endswith(_PAGE_ENDINGS):
        return True
    is_site = host.startswith(_PAGE_HOSTS) or host.endswith((".wikipedia.org", ".github.io", ".readthedocs.io"))
    return (is_site and "." not in last) or bool(_STORY.fullmatch(last))
