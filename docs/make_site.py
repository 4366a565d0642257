"""Hooks of mkdocs for `make site`: what lies outside docs/ becomes pages, and links lead to them.

The site has every page of docs/, the README as its first page, the notebooks with what they show, and whatever any of
these link to in the repository. Notebooks run once for each state of the notebook and of the package; their outputs
are kept in .cache/site. With SITE_NOTEBOOKS=no they are shown without outputs, and none runs.
"""

from __future__ import annotations

import base64
import hashlib
import html
import logging
import os
import posixpath
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "site"
RUN_NOTEBOOKS = os.environ.get("SITE_NOTEBOOKS", "yes") != "no"
AT_ONCE = 2
"""Notebooks that run side by side."""
LONGEST_CELL_S = 600

_LINK = re.compile(r"(\]\(|^\[[^\]]+\]: +)([^)\s]+)", re.MULTILINE)
_CODE = re.compile(r"^( *)(```+).*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^(::: \S*?(\w+)\n(?: +options: \{ heading: (\w+).*\n)?\n```python)$", re.MULTILINE)
_outputs: dict[str, list[str]] = {}
"""Page → its outputs in HTML. They are put in when Markdown has been read, which leaves them as they are."""


# ---- what becomes of a path of the repository


def uri_of(path: Path) -> str:
    """Return where a file or folder of the repository is in the site."""
    inside = path.relative_to(ROOT)
    if inside == Path("README.md"):
        return "index.md"
    if path.is_relative_to(ROOT / "docs") and path != ROOT / "docs":
        inside = path.relative_to(ROOT / "docs")
        return f"{inside.as_posix()}/index.md" if path.is_dir() else inside.as_posix()
    if path.suffix == ".ipynb":
        return inside.with_suffix(".md").as_posix()
    if path.suffix == ".md":
        return inside.as_posix()
    return f"source/{inside.as_posix()}/index.md" if path.is_dir() else f"source/{inside.as_posix()}.md"


def links_in(text: str, origin: Path) -> Iterator[tuple[str, Path, str]]:
    """Yield each link to the repository as (link, path that is there, fragment), but for those in code."""
    for match in _LINK.finditer(_CODE.sub("", text)):
        parts = urlsplit(match[2])
        target = Path(os.path.normpath(origin.parent / parts.path))
        if parts.path and not parts.scheme and target.is_relative_to(ROOT) and target.exists():
            yield match[2], target, parts.fragment


def with_links_of_the_site(text: str, origin: Path) -> str:
    """Return Markdown whose links lead from the origin's page to pages of the site."""
    here = posixpath.dirname(uri_of(origin))
    for link, target, fragment in set(links_in(text, origin)):
        moved = posixpath.relpath(uri_of(target), here or ".") + (f"#{fragment}" if fragment else "")
        text = re.sub(rf"(\]\(|\]: +){re.escape(link)}(?=[)\s])", lambda match, to=moved: match[1] + to, text)
    return text


def page_of(path: Path) -> str:
    """Return Markdown that shows a file or a folder."""
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    name = path.relative_to(ROOT).as_posix()
    if not path.is_dir():
        return f"# {path.name}\n\n`{name}`\n\n{_fenced(path)}"
    if path.is_relative_to(ROOT / "docs"):
        listed = [f"- [{_title_of(each)}]({each.name})" for each in sorted(path.glob("*.md"))]
        return "\n".join([f"# {path.name.capitalize()}", "", *listed])
    files = [each for each in sorted(path.iterdir()) if each.is_file()]
    return "\n\n".join([f"# {name}", *(f"## {each.name}\n\n{_fenced(each)}" for each in files)])


def _fenced(path: Path) -> str:
    language = {".py": "python", ".toml": "toml", ".json": "json"}.get(path.suffix, "text")
    return f"````{language}\n{path.read_text(encoding='utf-8')}\n````\n"


def _title_of(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


# ---- notebooks


def executed(path: Path) -> nbformat.NotebookNode:
    """Return the notebook with its outputs, from the cache where neither it nor the package has changed."""
    state = hashlib.sha256(path.read_bytes())
    for module in sorted((ROOT / "docmind_lab").rglob("*.py")):
        state.update(module.read_bytes())
    kept = CACHE / f"{path.stem}-{state.hexdigest()[:16]}.ipynb"
    if not kept.exists():
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(notebook, timeout=LONGEST_CELL_S, resources={"metadata": {"path": str(path.parent)}})
        # What builds the site is not there for a notebook.
        client.execute(env={**os.environ, "PYTHONPATH": "", "TQDM_DISABLE": "1"})
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, kept)
    return nbformat.read(kept, as_version=4)


def notebook_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    notebook = executed(path) if RUN_NOTEBOOKS else nbformat.read(path, as_version=4)
    parts, pictures, shown = [], dict[str, bytes](), _outputs.setdefault(uri_of(path), [])
    shown.clear()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        code = re.sub(r"^%.*\n", "", cell.source, flags=re.MULTILINE)
        parts.append(f"```python\n{code}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if output.get("name") == "stderr" or "application/vnd.jupyter.widget-view+json" in data:
                continue
            if "image/png" in data:
                name = f"{path.stem}-{len(pictures)}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![Figure that the code above draws.]({name})")
                continue
            text = data.get("text/html") or f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"
            parts.append(f'<div class="output" data-output="{len(shown)}"></div>')
            shown.append(text)
    note = "" if RUN_NOTEBOOKS else "\n\n!!! note\n    This copy of the site has no outputs of notebooks.\n"
    first, *others = parts
    return "\n\n".join([first + note, *others]), pictures


# ---- the hooks


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List every notebook but the first, which is in the tutorial."""
    _, *others = sorted((ROOT / "notebooks").glob("*.ipynb"))
    for part in config.nav or []:
        if "Notebooks" in part:
            part["Notebooks"] = [uri_of(path) for path in others]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the notebooks, and what the pages of docs/ link to in the repository."""
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pages = dict(zip(notebooks, pool.map(notebook_page, notebooks), strict=True))
    named = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    waiting = [*named, *notebooks, *(Path(file.abs_src_path) for file in files.documentation_pages())]
    known = set(waiting)
    while waiting:
        path = waiting.pop()
        text, pictures = pages[path] if path in pages else (page_of(path), {})
        if path.suffix in {".md", ".ipynb"}:
            found = {target for _, target, _ in links_in(text, path)}
            new = {each for each in found - known if files.get_file_from_path(uri_of(each)) is None}
            waiting += new
            known |= new
        if files.get_file_from_path(uri_of(path)) is None:
            moved = with_links_of_the_site(text, path) if path.suffix in {".md", ".ipynb"} else text
            files.append(File.generated(config, uri_of(path), content=moved))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page of docs/ with links that lead to pages of the site, and a title over each example of a name."""
    source = Path(page.file.abs_src_path or "")
    markdown = _EXAMPLE.sub(lambda match: f'{match[1]} title="Example of {match[3] or match[2]}"', markdown)
    return with_links_of_the_site(markdown, source) if source.is_relative_to(ROOT / "docs") else markdown


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with the outputs of its notebook, and with tables that a keyboard can scroll."""
    shown = _outputs.get(page.file.src_uri, [])
    content = re.sub(
        r'(<div class="output") data-output="(\d+)">', lambda m: f'{m[1]} tabindex="0">{shown[int(m[2])]}', content
    )
    return content.replace("<table>", '<table tabindex="0">')


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Return a page whose search has a name for those who hear it."""
    search = 'data-md-component="search" role="dialog"'
    return output.replace(search, f'{search} aria-label="Search"')


def diagram(source: str, language: str, css_class: str, options: object, md: object, **_: object) -> str:
    """Return the picture of a diagram in place of its code; a warning where docs/make_diagrams.py has drawn none."""
    path = ROOT / "docs" / "images" / "diagrams" / f"d{hashlib.sha256(source.encode()).hexdigest()[:12]}.svg"
    if not path.exists():
        logging.getLogger("mkdocs.diagrams").warning("no picture of a diagram; run docs/make_diagrams.py: %s", source)
        return f"<pre>{html.escape(source)}</pre>"
    return f'<div class="{css_class}" tabindex="0">{path.read_text(encoding="utf-8")}</div>'
