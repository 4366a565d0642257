"""The form that a description states for a text: an expression, a mask, a standard, or so many letters or digits.

    stated_form("Day of arrival, YYYY-MM-DD").reads     # an expression for 2026-01-15
    stated_form("Currency, a three-letter code").reads  # "[A-Z]{3}"

One rule holds for all of them: what is stated becomes an expression, and the text matches it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SIXTY = r"[0-5]\d"
# Part of a mask, as people and as strftime write it → what is written there. Each month has 28 days.
_PARTS: Final = {
    "YYYY": "2026",
    "YY": "26",
    "MM": "(0[1-9]|1[0-2])",
    "DD": r"(0[1-9]|1\d|2[0-8])",
    "HH": r"([01]\d|2[0-3])",
    "SS": _SIXTY,
}
_OF_STRFTIME: Final = {"%Y": "YYYY", "%y": "YY", "%m": "MM", "%d": "DD", "%H": "HH", "%M": "MM", "%S": "SS"}
_PART = r"(?:%[YymdHMS]|YYYY|yyyy|YY|yy|MM|mm|DD|dd|HH|hh|SS|ss)"
_MASK = re.compile(rf"(?<![A-Za-z%])(?:{_PART}(?:[-/.:_ ]?T?{_PART})+Z?|YYYY|yyyy|%Y)(?![A-Za-z])")
_EXPRESSION = re.compile(r"\^([^\s\"'`]+)\$")
_NUMBERS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
# "3-letter", "three uppercase letters", "6 digits"; a bound such as "at most 5 digits" is no form.
_SO_MANY = re.compile(
    r"(?<!most )(?<!least )(?<!to )(?<!than )(?<!max )(?<!maximum )(?<!and )(?<!or )(?<!last )(?<!first )(?<![-\d])\b"
    rf"(?P<count>\d{{1,2}}|{'|'.join(_NUMBERS)})[- ](?P<case>(?:upper|lower)-?case[- ]|capital )?"
    r"(?P<kind>letter|digit)s?\b(?! after)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class StatedForm:
    """The form of a text.

    Args:
        writes: An expression that texts are made by.
        reads: An expression that every text of this form matches from end to end.
    """

    writes: str
    reads: str


def stated_form(description: str) -> StatedForm | None:
    """Return the form that a text is to have; None where none is stated.

    Args:
        description: What a schema says of a field.
    """
    if (written := _EXPRESSION.search(description)) and _compiles(written[1]):
        return StatedForm(written[1], written[1])
    if mask := _MASK.search(description):
        return _of_mask(mask[0])
    if re.search(r"\bISO[- ]?8601\b|\bRFC[- ]?3339\b", description, re.IGNORECASE):
        return _of_iso_8601(description.lower())
    if re.search(r"\bUUID\b", description, re.IGNORECASE):
        return StatedForm(_UUID, r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
    so_many = _SO_MANY.search(description)
    return _of_count(so_many) if so_many else None


def _compiles(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True


def _of_mask(mask: str) -> StatedForm:
    """Return the form of a mask. MM is a month, or the minutes where the hour stands before it."""
    writes = reads = before = ""
    for each in re.findall(rf"{_PART}|.", mask):
        part = _OF_STRFTIME.get(each, each.upper())
        if part in _PARTS:
            writes += _SIXTY if part == "MM" and before == "HH" else _PARTS[part]
            reads += rf"\d{{{len(part)}}}"
            before = part
        else:
            writes, reads = writes + re.escape(each), reads + re.escape(each)
    return StatedForm(writes, reads)


def _of_iso_8601(said: str) -> StatedForm:
    if "duration" in said:
        return StatedForm("PT[1-9]H", r"P(?:\d+[YMWD])*(?:T(?:\d+[HMS])+)?")
    is_date = re.search(r"\bdates?\b(?![- ]?time)", said) and not re.search(r"\btime|instant|hour", said)
    return _of_mask("YYYY-MM-DD" if is_date else "YYYY-MM-DDTHH:MM:SSZ")


def _of_count(so_many: re.Match[str]) -> StatedForm:
    count, kind = so_many["count"].lower(), so_many["kind"].lower()
    times = _NUMBERS.index(count) + 1 if count in _NUMBERS else int(count)
    is_lower = (so_many["case"] or "").lower().startswith("lower")
    characters = r"\d" if kind == "digit" else "[a-z]" if is_lower else "[A-Z]"
    form = f"{characters}{{{times}}}"
    return StatedForm(form, form)
