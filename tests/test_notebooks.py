"""The rules of the notebooks that can be checked without running them; `make test` runs them too."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
ENDING = ("What not to conclude", "Open questions")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path, kind=None):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if kind in (None, cell["cell_type"])]


def text_of(cell):
    return "".join(cell["source"])


def tags_of(cell):
    return frozenset(cell["metadata"].get("tags", []))


def markdown_of(path):
    return "\n".join(map(text_of, cells_of(path, "markdown")))


def code_lines(cell):
    """The lines of a cell that do something; those that import are not counted."""
    return [line for line in text_of(cell).splitlines() if line.strip() and not line.startswith(("import", "from"))]


def parsed(cell):
    """The cell's syntax tree without IPython's magics."""
    return ast.parse("\n".join(line for line in text_of(cell).splitlines() if not line.startswith("%")))


def nodes_of(path, *kinds):
    return [node for cell in cells_of(path, "code") for node in ast.walk(parsed(cell)) if isinstance(node, kinds)]


def title_of(path):
    return text_of(cells_of(path)[0]).splitlines()[0].removeprefix("# ")


@every_notebook
def test_it_has_one_question_for_its_title_12_to_32_cells_and_an_ending(path):
    cells = cells_of(path)
    assert 12 <= len(cells) <= 32
    # As nbstripout numbers them: ids drawn at random would differ after every run.
    assert [cell["id"] for cell in cells] == [str(number) for number in range(len(cells))]
    assert (cells[0]["cell_type"], cells[-1]["cell_type"]) == ("markdown", "markdown")
    assert text_of(cells[0]).startswith("# ")
    assert (title_of(path)[-1], title_of(path).count("?")) == ("?", 1)
    headings = re.findall(r"^(#{1,6}) +(.+?) *$", markdown_of(path), flags=re.MULTILINE)
    assert [level for level, _ in headings].count("#") == 1
    assert tuple(words for _, words in headings[-2:]) == ENDING


@every_notebook
def test_code_is_short_defines_nothing_and_is_stripped(path):
    cells = cells_of(path, "code")
    assert {cell["id"]: len(code_lines(cell)) for cell in cells if len(code_lines(cell)) > 5} == {}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    assert [ast.unparse(node) for node in nodes_of(path, *kinds)] == []
    assert [cell["id"] for cell in cells if cell["outputs"] or cell["execution_count"] is not None] == []


@every_notebook
def test_the_first_code_cell_holds_the_imports_and_the_seed(path):
    first, *others = cells_of(path, "code")
    imports = (ast.Import, ast.ImportFrom)
    assert any(isinstance(node, imports) for node in ast.walk(parsed(first)))
    assert [ast.unparse(n) for cell in others for n in ast.walk(parsed(cell)) if isinstance(n, imports)] == []
    assert re.search(r"^SEED = \d+$", text_of(first), flags=re.MULTILINE)
    froms = [str(node.module) for node in nodes_of(path, ast.ImportFrom)]
    modules = [*froms, *(alias.name for node in nodes_of(path, ast.Import) for alias in node.names)]
    # benchmarks is of the repository, as the notebooks are.
    known = {"docmind_lab", "benchmarks", "my_agent"}
    assert {name.partition(".")[0] for name in modules} <= {*known, *sys.stdlib_module_names}


@every_notebook
def test_its_kernel_parameters_and_tags_are_those_that_a_run_expects(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert {"raises-exception", "skip-execution"}.isdisjoint(tag for cell in book["cells"] for tag in tags_of(cell))
    (parameters,) = [cell for cell in book["cells"] if "parameters" in tags_of(cell)]
    statements = parsed(parameters).body
    assert statements
    for statement in statements:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)
    (picture,) = [cell for cell in book["cells"] if "gallery" in tags_of(cell)]
    # The last expression draws; its semicolon keeps the text of the axes out of the notebook.
    assert code_lines(picture)[-1].startswith("dl.plots.")
    assert code_lines(picture)[-1].endswith(";")


@every_notebook
def test_it_asserts_each_of_its_claims_about_what_was_measured(path):
    claims = nodes_of(path, ast.Assert)
    # A small notebook has few claims.
    assert len(claims) >= 3
    # A claim that names nothing, such as `assert True`, cannot fail.
    idle = [claim for claim in claims if not any(isinstance(node, ast.Name) for node in ast.walk(claim.test))]
    assert [ast.unparse(claim) for claim in idle] == []


@every_notebook
def test_the_claims_of_a_section_are_in_one_cell_and_it_is_the_last_of_its_code(path):
    marks = ""
    for cell in cells_of(path):
        if cell["cell_type"] == "code":
            marks += "a" if re.search(r"^ *assert ", text_of(cell), flags=re.MULTILINE) else "c"
        elif re.search(r"^##", text_of(cell), flags=re.MULTILINE):
            marks += "#"
    assert re.findall("a[ac]+", marks) == []


def test_all_notebooks_together_are_read_in_an_hour():
    # At 200 words a minute, and the outputs are still to be looked at.
    assert sum(len(markdown_of(path).split()) for path in NOTEBOOKS) <= 12_000


@every_notebook
def test_no_place_of_the_writers_machine_is_named(path):
    assert re.findall(r"(?:/home|/root|/tmp|/Users|/work|[A-Z]:\\)[\w/\\.-]*", path.read_text(encoding="utf-8")) == []


def test_the_first_notebook_has_no_links_which_a_copy_of_it_would_not_have():
    assert re.findall(r"\]\(", markdown_of(NOTEBOOKS[0])) == []


# ---- the gallery

GALLERY = FOLDER.parent / "docs" / "gallery.md"
# What docs/make_gallery.py allows.
MOST_BYTES = 150_000


def gallery_sections():
    """Heading → text, of the sections of the gallery."""
    _, *sections = re.split(r"^## ", GALLERY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}


@every_notebook
def test_the_gallery_has_its_question_a_link_and_a_small_picture_with_words(path):
    section = gallery_sections()[f"{path.stem[:2]} · {title_of(path)}"]
    assert f"(../notebooks/{path.name})" in section
    ((words, picture),) = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", section)
    assert len(words.split()) >= 15
    assert picture == f"images/gallery/{path.stem}.png"
    content = (GALLERY.parent / picture).read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) <= MOST_BYTES


def test_the_gallery_has_the_notebooks_in_their_order_and_no_others():
    assert [heading[:2] for heading in gallery_sections()] == [path.stem[:2] for path in NOTEBOOKS]


@pytest.mark.parametrize("path", [GALLERY, *NOTEBOOKS], ids=lambda path: path.stem)
def test_links_to_files_lead_somewhere(path):
    text = path.read_text(encoding="utf-8") if path == GALLERY else markdown_of(path)
    targets = re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", text)
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_a_notebook_with_a_panel_shows_a_picture_of_it_where_widgets_do_not_run():
    with_panel = [path for path in NOTEBOOKS if any(node.attr == "tune" for node in nodes_of(path, ast.Attribute))]
    assert with_panel
    # The first one is copied alone, and has its picture in the cell before.
    for path in set(with_panel) - {NOTEBOOKS[0]}:
        (static,) = [cell for cell in cells_of(path) if "static" in tags_of(cell)]
        assert code_lines(static)[-1].startswith("dl.plots.")
        assert f"images/gallery/{path.stem}-static.png" in markdown_of(path)
