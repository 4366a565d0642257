"""The report of a study as one HTML page.

    report = build_report(study)         # sections of words, tables and figures
    write_report(report, "report.html")

build.py           the report of a study: which sections it has
report_tables.py   arms with intervals, differences, and the numbers behind figures
figures.py         figures as images
report_page.py     what a report consists of, and the page of it
"""

from docmind_lab.views.reports.build import build_report
from docmind_lab.views.reports.report_page import Report, write_report

__all__ = ["Report", "build_report", "write_report"]
