"""The report of a study as HTML, Markdown or JSON.

    report = build_report(study)         # sections of words, tables and figures
    write_report(report, "report.html")  # the ending says the format

report_model.py    what a report consists of
build.py           the report of a study: which sections it has
sections.py        the sections of words
report_tables.py   arms with intervals, differences, controls, and the numbers behind figures
figures.py         figures as images
report_formats.py  the same report in three formats
"""

from docmind_lab.views.reports.build import build_report
from docmind_lab.views.reports.report_formats import FORMATS, write_report
from docmind_lab.views.reports.report_model import Report

__all__ = ["FORMATS", "Report", "build_report", "write_report"]
