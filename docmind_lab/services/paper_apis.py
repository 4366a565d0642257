"""What the simulated services for scientific papers answer, each in its own shape: arXiv, Semantic Scholar and others.

What they find is the same for the same query, and quotes it. A paper that is asked for by its identifier has it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final
from xml.sax.saxutils import escape

from docmind_lab.services.endpoint_request import EndpointRequest
from docmind_lab.services.search_apis import MOST_HITS, hits_of, whole_number

_ARXIV_ID = re.compile(r"\d{4}\.\d{4,5}")
_AUTHOR: Final = "Ada Example"
_VENUE: Final = "Proceedings of Examples"


def arxiv(request: EndpointRequest) -> Any:
    """Return papers as the Atom feed of arXiv's API does."""
    given = request.query
    first, count = whole_number(given.get("start"), 0), whole_number(given.get("max_results"), 10)
    asked = [one for one in given.get("id_list", "").split(",") if one]
    query = given.get("search_query", "") or ", ".join(asked)
    hits = hits_of(query, len(asked) or MOST_HITS)
    papers = [
        f"<entry><id>http://arxiv.org/abs/{name}v1</id><updated>2025-01-{place + 1:02}T00:00:00Z</updated>"
        f"<published>2025-01-{place + 1:02}T00:00:00Z</published><title>{escape(hit['title'])}</title>"
        f"<summary>{escape(hit['text'])}</summary><author><name>Ada Example</name></author>"
        f'<link href="http://arxiv.org/abs/{name}v1" rel="alternate" type="text/html"/>'
        f'<link title="pdf" href="http://arxiv.org/pdf/{name}v1" rel="related" type="application/pdf"/>'
        '<arxiv:primary_category term="cs.AI"/><category term="cs.AI"/></entry>'
        for place, hit in enumerate(hits)
        if (name := _paper_id(asked[place] if place < len(asked) else "", place))
    ]
    shown = papers[first : first + count]
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom">'
        f"<title>ArXiv Query: {escape(query)}</title><id>http://arxiv.org/api/query</id>"
        f"<opensearch:totalResults>{len(papers)}</opensearch:totalResults>"
        f"<opensearch:startIndex>{first}</opensearch:startIndex>"
        f"<opensearch:itemsPerPage>{len(shown)}</opensearch:itemsPerPage>{''.join(shown)}</feed>"
    )


def _paper_id(asked: str, place: int) -> str:
    named = _ARXIV_ID.search(asked)
    return named[0] if named else f"2501.{place + 1:05}"


# ---- Semantic Scholar


def semantic_scholar(request: EndpointRequest) -> Any:
    """Return papers and authors as api.semanticscholar.org does."""
    _, _, path = request.path.partition("/v1/")
    given = request.query
    if path == "author/search":
        return {"total": 1, "offset": 0, "data": [{"authorId": "1", "name": given.get("query", ""), "paperCount": 3}]}
    if path == "paper/batch":
        ids = request.json.get("ids", ()) if isinstance(request.json, dict) else ()
        return [_scholar_paper(str(one), f"Paper {one}") for one in ids]
    if path.startswith("paper/search") or path == "snippet/search":
        return _list_of(request, [_scholar_paper("", title) for title in _titles(given.get("query", ""), given)])
    # A DOI has a slash of its own.
    found = re.fullmatch(r"papers?/(?P<of>.+?)(?:/(?P<what>citations|references|authors))?", path)
    of, what = (found["of"], found["what"]) if found else (path, None)
    related = [_scholar_paper("", title) for title in _titles(f"papers beside {of}", given)]
    if path.startswith("papers/"):
        return {"recommendedPapers": related}
    if what == "authors":
        return _list_of(request, [{"authorId": "1", "name": _AUTHOR}])
    if what in ("citations", "references"):
        name = "citingPaper" if what == "citations" else "citedPaper"
        return _list_of(request, [{name: paper, "isInfluential": False} for paper in related])
    return _scholar_paper(of, f"Paper {of}")


def _list_of(request: EndpointRequest, data: list[Any]) -> dict[str, Any]:
    return {"total": len(data), "offset": whole_number(request.query.get("offset"), 0), "data": data}


def _scholar_paper(identifier: str, title: str) -> dict[str, Any]:
    key = identifier or hashlib.sha256(title.encode()).hexdigest()[:40]
    return {
        "paperId": key,
        "externalIds": {"DOI": _doi(title), "CorpusId": _number(title)},
        "url": f"https://www.example.com/paper/{_number(title)}",
        "title": title,
        "abstract": _abstract(title),
        "tldr": {"model": "example", "text": _abstract(title)},
        "venue": _VENUE,
        "journal": {"name": _VENUE},
        "year": 2025,
        "publicationDate": "2025-01-15",
        "publicationTypes": ["JournalArticle"],
        "fieldsOfStudy": ["Computer Science"],
        "citationCount": _number(title) % 200,
        "influentialCitationCount": _number(title) % 20,
        "referenceCount": 30,
        "isOpenAccess": False,
        "openAccessPdf": None,
        "authors": [{"authorId": "1", "name": _AUTHOR}],
    }


# ---- OpenAlex


def openalex(request: EndpointRequest) -> Any:
    """Return works as api.openalex.org does."""
    given = request.query
    _, _, identifier = request.path.partition("/works/")
    if identifier:
        return _work(identifier, f"Paper {identifier}")
    filters = dict(part.partition(":")[::2] for part in given.get("filter", "").split(","))
    query = given.get("search") or next((text for name, text in filters.items() if name.endswith(".search")), "")
    works = [_work("", title) for title in _titles(query or given.get("filter", ""), given)]
    return {"meta": {"count": len(works), "page": 1, "per_page": len(works)}, "results": works, "group_by": []}


def _work(identifier: str, title: str) -> dict[str, Any]:
    address = f"https://openalex.org/{identifier or f'W{_number(title)}'}"
    positions: dict[str, list[int]] = {}
    for place, word in enumerate(_abstract(title).split()):
        positions.setdefault(word, []).append(place)
    return {
        "id": address,
        "doi": f"https://doi.org/{_doi(title)}",
        "ids": {"openalex": address},
        "title": title,
        "display_name": title,
        "publication_year": 2025,
        "publication_date": "2025-01-15",
        "type": "article",
        "language": "en",
        "cited_by_count": _number(title) % 200,
        "is_retracted": False,
        "open_access": {"is_oa": False, "oa_status": "closed", "oa_url": None},
        "primary_location": {"landing_page_url": address, "pdf_url": None, "source": {"display_name": _VENUE}},
        "best_oa_location": None,
        "authorships": [{"author": {"id": "https://openalex.org/A1", "display_name": _AUTHOR}, "institutions": []}],
        "abstract_inverted_index": positions,
        "concepts": [],
        "topics": [],
        "referenced_works": [],
        "related_works": [],
    }


# ---- Crossref


def crossref(request: EndpointRequest) -> Any:
    """Return works as api.crossref.org does."""
    given = request.query
    _, _, doi = request.path.partition("/works/")
    if doi:
        return {"status": "ok", "message-type": "work", "message": _crossref_work(doi, f"Paper {doi}")}
    query = next((given[key] for key in sorted(given) if key.startswith("query")), "")
    items = [_crossref_work(_doi(title), title) for title in _titles(query, given)]
    found = {"total-results": len(items), "items-per-page": len(items), "items": items}
    return {"status": "ok", "message-type": "work-list", "message": found}


def _crossref_work(doi: str, title: str) -> dict[str, Any]:
    given, family = _AUTHOR.split()
    return {
        "DOI": doi,
        "URL": f"https://doi.org/{doi}",
        "type": "journal-article",
        "title": [title],
        "abstract": f"<jats:p>{escape(_abstract(title))}</jats:p>",
        "container-title": [_VENUE],
        "publisher": "Example",
        "author": [{"given": given, "family": family, "sequence": "first", "affiliation": []}],
        "issued": {"date-parts": [[2025, 1, 15]]},
        "published": {"date-parts": [[2025, 1, 15]]},
        "is-referenced-by-count": _number(title) % 200,
        "references-count": 30,
    }


# ---- PubMed


def pubmed(request: EndpointRequest) -> Any:
    """Return papers as the E-utilities of eutils.ncbi.nlm.nih.gov do: esearch, esummary and efetch."""
    given = {**request.form, **request.query}
    is_json = given.get("retmode") == "json"
    if "esearch" in request.path:
        ids = [str(_number(title)) for title in _titles(given.get("term", ""), {"rows": given.get("retmax", "20")})]
        if is_json:
            found = {"count": str(len(ids)), "retmax": str(len(ids)), "retstart": "0", "idlist": ids}
            return {"header": {"type": "esearch"}, "esearchresult": {**found, "webenv": "1", "querykey": "1"}}
        listed = "".join(f"<Id>{one}</Id>" for one in ids)
        return _xml("eSearchResult", f"<Count>{len(ids)}</Count><RetStart>0</RetStart><IdList>{listed}</IdList>")
    ids = [one for one in given.get("id", "").split(",") if one]
    if "esummary" in request.path and is_json:
        papers = {
            one: {"uid": one, "title": f"Paper {one}", "source": _VENUE, "pubdate": "2025 Jan 15", "authors": []}
            for one in ids
        }
        return {"header": {"type": "esummary"}, "result": {"uids": ids, **papers}}
    return _xml("PubmedArticleSet", "".join(_pubmed_article(one) for one in ids))


def _pubmed_article(identifier: str) -> str:
    shown, title = escape(identifier), f"Paper {escape(identifier)}"
    last, first = _AUTHOR.split()[::-1]
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{shown}</PMID><Article><Journal><Title>{_VENUE}</Title><JournalIssue>"
        f"<PubDate><Year>2025</Year><Month>Jan</Month></PubDate></JournalIssue></Journal><ArticleTitle>{title}"
        f"</ArticleTitle><Abstract><AbstractText>{_abstract(title)}</AbstractText></Abstract><AuthorList><Author>"
        f"<LastName>{last}</LastName><ForeName>{first}</ForeName></Author></AuthorList><ArticleDate><Year>2025</Year>"
        "<Month>01</Month><Day>15</Day></ArticleDate></Article></MedlineCitation></PubmedArticle>"
    )


def _xml(root: str, inner: str) -> str:
    return f'<?xml version="1.0" encoding="UTF-8"?><{root}>{inner}</{root}>'


# ---- Europe PMC


def europe_pmc(request: EndpointRequest) -> Any:
    """Return papers as www.ebi.ac.uk/europepmc/webservices/rest/search does."""
    given = request.query
    papers = [
        {
            "id": str(_number(title)),
            "source": "MED",
            "pmid": str(_number(title)),
            "doi": _doi(title),
            "title": title,
            "authorString": _AUTHOR,
            "journalTitle": _VENUE,
            "pubYear": "2025",
            "firstPublicationDate": "2025-01-15",
            "abstractText": _abstract(title),
            "isOpenAccess": "N",
            "citedByCount": _number(title) % 200,
        }
        for title in _titles(given.get("query", ""), {"rows": given.get("pageSize", "25")})
    ]
    return {"version": "6.9", "hitCount": len(papers), "nextCursorMark": "*", "resultList": {"result": papers}}


# ---- what they have in common


def _titles(query: str, given: Any) -> list[str]:
    """Return titles of papers about a query, as many as the request asks for."""
    count = next(
        (given[key] for key in ("limit", "per-page", "per_page", "rows", "numResults") if given.get(key)), "10"
    )
    return [hit["title"] for hit in hits_of(query, count)]


def _abstract(title: str) -> str:
    return f"{title} says what it is, how it was measured, and what to mind."


def _number(title: str) -> int:
    return int(hashlib.sha256(title.encode()).hexdigest()[:7], 16) + 1


def _doi(title: str) -> str:
    # 10.5555 is kept for examples.
    return f"10.5555/{_number(title)}"
