"""Draws the Mermaid diagrams of docs/*.md into docs/images/diagrams, in Chromium; needed when one of them changes.

    python docs/make_diagrams.py mermaid.min.js     the script of the npm package mermaid, in its folder dist

A picture is called by a digest of its diagram. The site shows it in the place of the diagram, so that its pages need no
script of others. tests/test_docs.py says when one is missing.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "images" / "diagrams"
DRAW = """async ([text, name]) => {
  mermaid.initialize({ startOnLoad: false, theme: "neutral", fontFamily: "sans-serif" })
  return (await mermaid.render(name, text)).svg
}"""


def diagrams() -> dict[str, str]:
    """Return each diagram of the pages by the name of its picture."""
    pages = [path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md"))]
    found = [text for page in pages for text in re.findall(r"```mermaid\n(.*?)\n```", page, re.DOTALL)]
    return {f"d{hashlib.sha256(text.encode()).hexdigest()[:12]}": text for text in found}


def main(script: str) -> None:
    """Draw all diagrams anew, and remove pictures of which there is none any more."""
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir(parents=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.add_script_tag(path=script)
        for name, text in diagrams().items():
            (PICTURES / f"{name}.svg").write_text(page.evaluate(DRAW, [text, name]) + "\n", encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
