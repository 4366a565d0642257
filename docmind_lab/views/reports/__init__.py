"""The report of a study as one HTML page.

    report = build_report(study)         # sections of words, tables and figures
    write_report(report, "report.html")

report_model.py    what a report consists of
build.py           the report of a study: which sections it has
sections.py        the sections of words
report_tables.py   arms with intervals, differences, and the numbers behind figures
figures.py         figures as images
report_html.py     the page
"""

from docmind_lab.views.reports.build import build_report
from docmind_lab.views.reports.report_html import write_report
from docmind_lab.views.reports.report_model import Report

__all__ = ["Report", "build_report", "write_report"]
