"""Writes the pictures of docs/gallery.md by running the notebooks' own code, each up to its cell tagged `gallery`.

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

MOST_BYTES = 150_000
"""A page of a dozen pictures still opens at once over a slow line."""

_LONGEST_CELL_S = 600


def tagged_cell(notebook: nbformat.NotebookNode) -> int:
    """The place of the one cell that is tagged. Raises: ValueError when there is none, or several."""
    places = [place for place, cell in enumerate(notebook.cells) if TAG in cell.metadata.get("tags", [])]
    if len(places) != 1:
        raise ValueError(f"{len(places)} cells are tagged {TAG!r}; tag the one that draws the main figure")
    return places[0]


def picture_of(path: Path) -> bytes:
    """The last image (PNG) of the tagged cell, after running the notebook up to it in its own folder.

    Raises: ValueError without such an image, or for one that is too large; what a cell raised.
    """
    notebook = nbformat.read(path, as_version=4)
    place = tagged_cell(notebook)
    notebook.cells = notebook.cells[: place + 1]
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=_LONGEST_CELL_S, kernel_name="python3", resources=resources).execute()
    shown = [output.get("data", {}) for output in notebook.cells[-1].outputs]
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
            (PICTURES / f"{path.stem}.png").write_bytes(picture_of(path))
            sys.stdout.write(f"{path.stem}.png\n")


if __name__ == "__main__":
    main(sys.argv[1:])
