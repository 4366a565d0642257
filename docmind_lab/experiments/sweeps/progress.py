"""A progress bar for whoever can see one: on a terminal, or in a notebook."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(unit: str = "runs") -> Iterator[Callable[[int, int], None]]:
    """What is called with (done, all); it draws a bar with rate and time left, or nothing where nobody would see it."""
    in_notebook = "ipykernel" in sys.modules
    if not in_notebook and not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from tqdm.auto import tqdm  # noqa: PLC0415 - only for those who see it; imports widgets in a notebook

    bar = tqdm(unit=f" {unit}", total=0, leave=False)

    def show(done: int, total: int) -> None:
        if bar.total != total:
            # What was there before this call says nothing of the rate.
            bar.reset(total=total)
            bar.initial = bar.n = done
        bar.update(done - bar.n)

    try:
        yield show
    finally:
        bar.close()
