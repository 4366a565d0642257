"""Read Markdown: sections by CommonMark's headings, text as written, links between pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from docmind_lab.docmind.documents.document import Document, Outline, clean_text
from docmind_lab.docmind.documents.text_files import decode

# Front matter is not CommonMark: its last line would turn the one above it into a heading.
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n((?:\w[\w-]*[ \t]*:.*\n|[ \t#-].*\n|\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")


def read_markdown(data: bytes) -> Document:
    """Read sections by headings (both styles, not inside quotes, lists and code), and link addresses.

    A body is the source between two headings: code, tables and lists as the author wrote them.
    Raises: UnreadableDocument for bytes that are not text.
    """
    text = clean_text(decode(data))
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    lines = body.split("\n")
    outline, start = Outline(), 0
    sections = [((), front[1])] if front else []
    found: list[tuple[tuple[str, ...], str]] = [*sections]
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map is not None:
            found.append((outline.headings, "\n".join(lines[start : token.map[0]])))
            outline.enter(int(token.tag[1:]), _plain(tokens[at + 1]))
            start = token.map[1]
    found.append((outline.headings, "\n".join(lines[start:])))
    return Document(sections=tuple(found), links=tuple(_links(tokens)))


def _plain(inline: Token) -> str:
    shown = ("text", "code_inline", "softbreak", "image")
    return "".join(child.content or " " for child in inline.children or () if child.type in shown)


def _links(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrs["href"])
