"""The command line in this process, as a person types it."""

from __future__ import annotations

from typing import Any

import pytest

from docmind_lab.views.cli import main


def said(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    """The exit code, what was printed, and what was complained of."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err
