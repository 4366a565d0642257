"""The report of a study as HTML, Markdown or JSON.

report = build_report(study)         # sections of words, tables and figures
write_report(report, "report.html")  # the ending says the format

model.py                   what a report consists of
build.py                   the report of a study: which sections it has
question.py, limits.py, provenance.py             the sections of words
tables.py                  arms with intervals, differences, controls; conditions_in_words.py how they are called
figures.py, figure_tables.py, pictures.py  figures, the numbers behind them, their images
html.py, markdown.py, as_json.py           the same report in three formats; files.py writes it
"""

from docmind_lab.interfaces.reports.build import build_report
from docmind_lab.interfaces.reports.formats import FORMATS, write_report
from docmind_lab.interfaces.reports.model import Report

__all__ = ["FORMATS", "Report", "build_report", "write_report"]
