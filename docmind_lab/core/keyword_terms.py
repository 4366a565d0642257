"""Finds Python keywords in a text that are stop words in prose, such as "with".

keyword_terms("What does a with statement do?")     # Counter({"with": 1})
keyword_terms("What goes with a statement?")        # Counter()
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

_KEYWORDS: Final = "and|as|for|from|if|in|is|not|or|while|with"
# In quotes or marked as code, as references write them, or named for what they are.
_AS_KEYWORD: Final = re.compile(
    rf"[\"'`‘“](?P<quoted>{_KEYWORDS})[\"'`’”]"
    rf"|\b(?P<named>{_KEYWORDS})[\s-]+(?:statement|keyword|clause|operator|loop|block)\b",
    re.IGNORECASE,
)


def keyword_terms(text: str) -> Counter[str]:
    """Count the mentions of Python keywords, in lower case, that are stop words elsewhere, such as "with"."""
    return Counter((match["quoted"] or match["named"]).lower() for match in _AS_KEYWORD.finditer(text))
