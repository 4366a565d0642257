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


def code_lines(cell):
    return [line for line in text_of(cell).splitlines() if line.strip()]


def parsed(cell):
    """The cell's syntax tree without IPython's magics."""
    return ast.parse("\n".join(line for line in text_of(cell).splitlines() if not line.startswith("%")))


def nodes_of(path, *kinds):
    return [node for cell in cells_of(path, "code") for node in ast.walk(parsed(cell)) if isinstance(node, kinds)]


def headings_of(path):
    text = "\n".join(text_of(cell) for cell in cells_of(path, "markdown"))
    return re.findall(r"^#{1,6} +(.+?) *$", text, flags=re.MULTILINE)


def test_the_notebooks_that_have_been_promised_are_there():
    promised = {"00_start_here", "01_which_alternative", "02_how_long_a_timeout", "03_router_injection"}
    promised |= {"04_faults_and_retries", "05_after_the_deadline", "06_can_virtual_time_be_trusted"}
    promised |= {"11_does_the_decision_stand", "12_does_a_replay_hold_on_a_real_server"}
    promised |= {"13_what_if_my_deadline_were_another", "14_what_does_a_deadline_leave_behind"}
    assert promised <= {path.stem for path in NOTEBOOKS}


def title_of(path):
    return text_of(cells_of(path)[0]).splitlines()[0].removeprefix("# ")


@every_notebook
def test_the_title_is_the_one_question(path):
    first = cells_of(path)[0]
    assert first["cell_type"] == "markdown"
    title = text_of(first).splitlines()[0]
    assert title.startswith("# ")
    assert title.endswith("?")
    assert len(re.findall(r"^# ", "\n".join(map(text_of, cells_of(path, "markdown"))), flags=re.MULTILINE)) == 1


@every_notebook
def test_it_ends_with_what_not_to_conclude_and_open_questions(path):
    assert tuple(headings_of(path)[-2:]) == ENDING
    assert cells_of(path)[-1]["cell_type"] == "markdown"


@every_notebook
def test_it_has_15_to_32_cells_with_stable_ids(path):
    cells = cells_of(path)
    assert 15 <= len(cells) <= 32
    # As nbstripout numbers them: ids drawn at random would differ after every run.
    assert [cell["id"] for cell in cells] == [str(number) for number in range(len(cells))]


@every_notebook
def test_a_code_cell_has_at_most_five_lines(path):
    assert {cell["id"]: len(code_lines(cell)) for cell in cells_of(path, "code") if len(code_lines(cell)) > 5} == {}


@every_notebook
def test_code_cells_define_nothing(path):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    assert [ast.unparse(node) for node in nodes_of(path, *kinds)] == []


@every_notebook
def test_prose_outweighs_code_ten_words_a_line(path):
    words = sum(len(text_of(cell).split()) for cell in cells_of(path, "markdown"))
    lines = sum(len(code_lines(cell)) for cell in cells_of(path, "code"))
    assert words >= 10 * lines


@every_notebook
def test_outputs_and_execution_counts_are_stripped(path):
    cells = cells_of(path, "code")
    assert [cell["id"] for cell in cells if cell["outputs"] or cell["execution_count"] is not None] == []


@every_notebook
def test_the_first_code_cell_holds_the_imports_and_the_seed(path):
    first, *others = cells_of(path, "code")
    imports = (ast.Import, ast.ImportFrom)
    assert any(isinstance(node, imports) for node in ast.walk(parsed(first)))
    assert [ast.unparse(n) for cell in others for n in ast.walk(parsed(cell)) if isinstance(n, imports)] == []
    assert re.search(r"^SEED = \d+$", text_of(first), flags=re.MULTILINE)


@every_notebook
def test_a_notebook_imports_the_package_the_benchmarks_and_the_standard_library_alone(path):
    froms = [str(node.module) for node in nodes_of(path, ast.ImportFrom)]
    modules = [*froms, *(alias.name for node in nodes_of(path, ast.Import) for alias in node.names)]
    # benchmarks is of the repository, as the notebooks are.
    assert {name.partition(".")[0] for name in modules} <= {"docmind_lab", "benchmarks", *sys.stdlib_module_names}


@every_notebook
def test_one_cell_is_tagged_parameters_and_only_sets_constants(path):
    tagged = [cell for cell in cells_of(path) if "parameters" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    statements = parsed(tagged[0]).body
    assert statements
    for statement in statements:
        assert isinstance(statement, ast.Assign)
        ast.literal_eval(statement.value)


@every_notebook
def test_the_kernel_is_python3_and_no_cell_is_excused_from_passing(path):
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    tags = {tag for cell in book["cells"] for tag in cell["metadata"].get("tags", [])}
    assert tags.isdisjoint({"raises-exception", "skip-execution"})


@every_notebook
def test_it_makes_claims_about_what_was_measured(path):
    claims = nodes_of(path, ast.Assert)
    assert claims
    # A claim that names nothing, such as `assert True`, cannot fail.
    idle = [claim for claim in claims if not any(isinstance(node, ast.Name) for node in ast.walk(claim.test))]
    assert [ast.unparse(claim) for claim in idle] == []


@every_notebook
def test_links_to_files_lead_somewhere(path):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", "\n".join(map(text_of, cells_of(path, "markdown"))))
    files = [link for link in links if "://" not in link]
    assert [link for link in files if not (path.parent / link).exists()] == []


@every_notebook
def test_it_names_no_place_of_the_machine_it_was_written_on(path):
    assert re.findall(r"(?:/home|/root|/tmp|/Users|/work|[A-Z]:\\)[\w/\\.-]*", path.read_text(encoding="utf-8")) == []


@every_notebook
def test_a_notebook_of_several_claims_asserts_each_of_them(path):
    assert len(nodes_of(path, ast.Assert)) >= 8


def test_the_first_notebook_leads_to_every_other_one():
    start, *others = NOTEBOOKS
    text = "\n".join(map(text_of, cells_of(start, "markdown")))
    assert [path.name for path in others if f"]({path.name})" not in text] == []


# ---- the gallery

GALLERY = FOLDER.parent / "docs" / "gallery.md"
# What docs/make_gallery.py allows.
MOST_BYTES = 150_000


def gallery_sections():
    """Heading → text, of the sections of the gallery."""
    _, *sections = re.split(r"^## ", GALLERY.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {section.partition("\n")[0]: section.partition("\n")[2] for section in sections}


@every_notebook
def test_the_gallery_has_its_question_a_link_and_a_picture_with_words(path):
    section = gallery_sections()[f"{path.stem[:2]} · {title_of(path)}"]
    assert f"(../notebooks/{path.name})" in section
    ((words, picture),) = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", section)
    assert len(words.split()) >= 15
    assert picture == f"images/gallery/{path.stem}.png"


def test_the_gallery_has_the_notebooks_in_their_order_and_no_others():
    assert [heading[:2] for heading in gallery_sections()] == [path.stem[:2] for path in NOTEBOOKS]


@every_notebook
def test_its_picture_in_the_gallery_is_a_small_png(path):
    picture = (GALLERY.parent / "images" / "gallery" / f"{path.stem}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= MOST_BYTES


@every_notebook
def test_one_cell_draws_the_picture_of_the_gallery(path):
    tagged = [cell for cell in cells_of(path) if "gallery" in cell["metadata"].get("tags", [])]
    assert len(tagged) == 1
    # The last expression draws; its semicolon keeps the text of the axes out of the notebook.
    assert code_lines(tagged[0])[-1].startswith("dl.plots.")
    assert code_lines(tagged[0])[-1].endswith(";")


def test_links_of_the_gallery_lead_somewhere():
    targets = re.findall(r"\]\((?!http)([^)#]+)\)", GALLERY.read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (GALLERY.parent / target).exists()] == []


def test_a_notebook_with_a_panel_shows_a_picture_of_it_where_widgets_do_not_run():
    with_panel = [path for path in NOTEBOOKS if nodes_named(path, "tune")]
    assert with_panel
    for path in with_panel:
        (static,) = [cell for cell in cells_of(path) if "static" in cell["metadata"].get("tags", [])]
        assert code_lines(static)[-1].startswith("dl.plots.")
        assert f"images/gallery/{path.stem}-static.png" in "\n".join(map(text_of, cells_of(path, "markdown")))


def nodes_named(path, attribute):
    return [node for node in nodes_of(path, ast.Attribute) if node.attr == attribute]
