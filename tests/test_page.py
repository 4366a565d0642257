from __future__ import annotations

import pandas as pd

from docmind_lab.findings.page import Page, Paste

PAGE = Page(
    "A <title>",
    (
        "A paragraph.",
        ("one", "two"),
        pd.DataFrame({"runs": [3]}, index=["A  <arm>"]),
        pd.DataFrame({"role": ["router"]}),
        Paste("X=1"),
    ),
)


def test_a_page_is_the_same_in_text_and_markdown() -> None:
    assert PAGE.text().splitlines() == [
        *(
            "A <title>",
            "A paragraph.",
            "- one",
            "- two",
            "          runs",
            "A  <arm>     3",
            "",
            "  role",
            "router",
            "",
        ),
        "Settings: X=1",
    ]
    assert PAGE.markdown().split("\n\n") == [
        *("## A <title>", "A paragraph.", "- one\n- two"),
        *("| | runs |\n|---|---:|\n| A  <arm> | 3 |", "| role |\n|---|\n| router |", "```\nX=1\n```\n"),
    ]


def test_a_page_of_html_has_no_markup_but_its_own() -> None:
    html = PAGE.html()
    assert html.startswith("<p><b>A &lt;title&gt;</b></p><p>A paragraph.</p><ul><li>one</li><li>two</li></ul><table")
    assert "&lt;arm&gt;" in html
    assert html.endswith("<pre>X=1</pre>")
