"""Read HTML: the visible text of a page, under its headings, and its links."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
from bs4.dammit import EncodingDetector
from bs4.element import PageElement, PreformattedString, Tag

from docmind_lab.docmind.documents.document import Document, Outline
from docmind_lab.docmind.documents.text_files import decode

_UNSEEN = frozenset({"script", "style", "nav", "noscript", "template", "svg", "head", "title"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# fmt: off
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "details", "div", "dl", "figcaption", "figure",
    "footer", "form", "header", "hr", "main", "ol", "p", "pre", "section", "summary", "table", "ul",
})
# fmt: on

_BY_LINE = frozenset({"li", "tr", "dt", "dd"})

# Two characters that are taken out of the text, to mark the ends of blocks and of lines in it.
_BLOCK_END, _LINE_END = "\x1e", "\x1f"
_MARKS = re.compile(f"[{_BLOCK_END}{_LINE_END}]")


def read_html(data: bytes) -> Document:
    """Read sections by h1 to h6, below the page's title until the first h1, and the visible links.

    Scripts, styles and navigation are left out, entities are resolved, preformatted text keeps its lines.
    Raises: UnreadableDocument for bytes that are not text.
    """
    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    text = _MARKS.sub("", decode(data, declared))
    with warnings.catch_warnings():
        # An XHTML page is read well enough as HTML, and the advice to install another parser is not for our user.
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        soup = BeautifulSoup(text, "html.parser")
    outline = Outline(soup.title.get_text() if soup.title is not None else "")
    sections: list[tuple[tuple[str, ...], str]] = []
    links: list[str] = []
    body: list[str] = []
    preformatted = 0
    for node, enters in _walk(soup):
        if not isinstance(node, Tag):
            shown = "" if isinstance(node, PreformattedString) else str(node)  # comments and declarations are not
            body.append(shown.replace("\n", _LINE_END).replace(" ", "\xa0") if preformatted else shown)
            continue
        body.append(_mark(node.name, enters))
        if node.name == "pre":
            preformatted += 1 if enters else -1
        elif node.name == "a" and enters and node.has_attr("href"):
            links.append(str(node["href"]))
        elif node.name in _HEADINGS and enters:
            sections.append((outline.headings, _fold_white_space(body)))
            outline.enter(_HEADINGS[node.name], _MARKS.sub(" ", node.get_text()))
            body = []
        elif node.name in _HEADINGS:
            body = []  # the heading's own text
    sections.append((outline.headings, _fold_white_space(body)))
    return Document(sections=tuple(sections), links=tuple(links))


def _walk(soup: BeautifulSoup) -> Iterator[tuple[PageElement, bool]]:
    """Yield each visible node when it is entered (True), and each tag again when it is left (False).

    Without recursion, however deep a page nests; without changes to the tree, whose cost grows with its width.
    """
    stack: list[tuple[Tag, Iterator[PageElement]]] = [(soup, iter(soup.contents))]
    while stack:
        tag, children = stack[-1]
        node = next(children, None)
        if node is None:
            stack.pop()
            yield tag, False
        elif not isinstance(node, Tag):
            yield node, True
        elif node.name not in _UNSEEN:
            yield node, True
            stack.append((node, iter(node.contents)))


def _mark(name: str, enters: bool) -> str:
    if name in _BLOCKS:
        return _BLOCK_END
    if name == "br" or (name in _BY_LINE and enters):
        return _LINE_END if enters else ""
    return " " if name in ("td", "th") else ""


def _fold_white_space(pieces: list[str]) -> str:
    """Return the text as displayed: white space folded, a new line at line ends, a blank line at block ends."""
    text = re.sub(r"[ \t\n\r\f]+", " ", "".join(pieces))
    text = re.sub(r"\n{3,}", "\n\n", re.sub(rf" ?{_LINE_END} ?", "\n", text))
    text = re.sub(rf"[ \n]*{_BLOCK_END}[ \n{_BLOCK_END}]*", "\n\n", text)
    return text.replace("\xa0", " ").strip("\n")
