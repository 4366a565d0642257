from __future__ import annotations

import pandas as pd

from docmind_lab.findings.finding import Code, Finding

SHOWN = pd.DataFrame({"role": ["router"]})
FINDING = Finding(
    (
        "A <title>",
        "A paragraph.",
        ("one", "two"),
        pd.DataFrame({"runs": [3]}, index=["A  <arm>"]),
        SHOWN,
        Code("X=1", "Settings: X=1"),
        Code("x < 1"),
    ),
    {"late": 3},
    {"roles": SHOWN},
)


def test_a_finding_is_the_same_in_text_and_markdown() -> None:
    assert FINDING.text().splitlines() == [
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
        "x < 1",
    ]
    assert FINDING.markdown().split("\n\n") == [
        *("## A <title>", "A paragraph.", "- one\n- two"),
        *(
            "| | runs |\n|---|---:|\n| A  <arm> | 3 |",
            "| role |\n|---|\n| router |",
            "```\nX=1\n```",
            "```\nx < 1\n```\n",
        ),
    ]


def test_paragraphs_and_lists_are_wrapped_below_their_words_and_code_is_not() -> None:
    finding = Finding(("A title of a finding", "1. some words", ("0.5  an instant",), Code("code = as_it_is")))
    assert finding.text(10).splitlines() == [
        *("A title of", "a finding", "1. some", "   words", "- 0.5  an", "       instant", "code = as_it_is"),
    ]


def test_a_finding_in_html_has_no_markup_but_its_own() -> None:
    html = FINDING.html()
    assert html.startswith("<p><b>A &lt;title&gt;</b></p><p>A paragraph.</p><ul><li>one</li><li>two</li></ul><div")
    assert "&lt;arm&gt;" in html
    assert html.endswith("<pre>X=1</pre><pre>x &lt; 1</pre>")


def test_a_finding_in_json_has_its_numbers_rows_and_sentences() -> None:
    sentences = ["A paragraph.", "one", "two"]
    assert FINDING.as_json() == {"sentences": sentences, "late": 3, "roles": [{"role": "router"}]}
