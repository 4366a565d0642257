"""Writes the pictures of docs/gallery.md by running the notebooks' own code, each up to its cell tagged `gallery`.

A cell tagged `static` draws what a widget shows, and its picture is written as <notebook>-static.png.

    python docs/make_gallery.py                     all of them, some minutes
    python docs/make_gallery.py 02_how_long_a_timeout

What runs in virtual time gives the same picture again; that of a notebook with a real clock differs a little.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
PICTURES = ROOT / "docs" / "images" / "gallery"
TAG = "gallery"
STATIC = "static"
"""Of a cell that draws what a widget shows, for readers without widgets; few notebooks have one."""

MOST_BYTES = 150_000
"""A page of a dozen pictures still opens at once over a slow line."""

_LONGEST_CELL_S = 600


def tagged_cells(notebook: nbformat.NotebookNode) -> dict[str, int]:
    """Tag → place of the cell that has it.

    Raises: ValueError unless one cell is tagged `gallery`, and at most one `static`.
    """
    places = {
        tag: [place for place, cell in enumerate(notebook.cells) if tag in cell.metadata.get("tags", [])]
        for tag in (TAG, STATIC)
    }
    if len(places[TAG]) != 1 or len(places[STATIC]) > 1:
        raise ValueError(f"{len(places[TAG])} cells are tagged {TAG!r}; tag the one that draws the main figure")
    return {tag: found[0] for tag, found in places.items() if found}


def pictures_of(path: Path) -> dict[str, bytes]:
    """File name → the last image (PNG) of each tagged cell, after running the notebook up to it in its own folder.

    Raises: ValueError without such an image, or for one that is too large; what a cell raised.
    """
    notebook = nbformat.read(path, as_version=4)
    places = tagged_cells(notebook)
    notebook.cells = notebook.cells[: max(places.values()) + 1]
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=_LONGEST_CELL_S, kernel_name="python3", resources=resources).execute()
    names = {TAG: f"{path.stem}.png", STATIC: f"{path.stem}-static.png"}
    return {names[tag]: _picture_in(notebook.cells[place], path) for tag, place in places.items()}


def _picture_in(cell: nbformat.NotebookNode, path: Path) -> bytes:
    shown = [output.get("data", {}) for output in cell.outputs]
    images = [data["image/png"] for data in shown if "image/png" in data]
    if not images:
        raise ValueError(f"{path.name}: the tagged cell draws nothing; let it end with a figure")
    picture = base64.b64decode(images[-1])
    if len(picture) > MOST_BYTES:
        raise ValueError(f"{path.name}: its picture has {len(picture):,} bytes, above {MOST_BYTES:,}; draw less in it")
    return picture


def main(stems: list[str]) -> None:
    """Write the pictures of these notebooks, or of all."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not stems or path.stem in stems:
            for name, picture in pictures_of(path).items():
                (PICTURES / name).write_bytes(picture)
                sys.stdout.write(f"{name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
