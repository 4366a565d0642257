"""A report as one HTML page that asks for nothing else: styles, figures and numbers are all inside."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable

import jinja2

from docmind_lab.interfaces.reports.model import Facts, Figure, Prose, Report, Table

TEMPLATE = "page.html.j2"


def as_html(report: Report) -> str:
    """The page. Whatever the study holds is escaped: a name of an arm or a fault is never markup."""
    return _template().render(report=report)


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("docmind_lab.interfaces.reports", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    for kind in (Prose, Facts, Table, Figure):
        environment.tests[kind.__name__.lower()] = _test_for(kind)
    return environment.get_template(TEMPLATE)


def _data_uri(figure: Figure) -> str:
    return f"data:{figure.media_type};base64,{base64.b64encode(figure.image).decode('ascii')}"


def _test_for(kind: type) -> Callable[[object], bool]:
    """What a template asks with `is table`."""
    return lambda block: isinstance(block, kind)
