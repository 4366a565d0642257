"""Text of a study stays text in the Markdown report."""

from __future__ import annotations

from markdown_it import MarkdownIt

from docmind_lab.views.reports.report_formats import as_markdown
from docmind_lab.views.reports.report_model import Facts, Prose, Report, Section

EVIL = "<script>alert(1)</script> <img src=x onerror=alert(1)> & [a](javascript:b) ``` </code>"


def test_html_in_names_and_words_of_a_study_is_shown_and_not_run() -> None:
    blocks = (Prose((EVIL,)), Prose((EVIL,), "list"), Prose((EVIL, "```", EVIL), "code"), Facts({"Study": EVIL}))
    report = Report(EVIL, "study", True, (Section("asked", EVIL, blocks),))
    page = MarkdownIt("commonmark", {"html": True}).render(as_markdown(report))
    assert "<script" not in page
    assert "<img" not in page
    assert 'javascript:b"' not in page
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 7
