"""The figures of a study, each a function from its tables to axes.

    dl.plots.timeline(study, seed=7)     one question, every call, under each alternative
    dl.plots.overrun(study)              how far past the deadline the caller waited, and the work went on
    dl.plots.completion(study)           the share of runs answered by each instant, with bands
    dl.plots.frontier(study)             what a longer budget buys; a study with several
    dl.plots.agreement(result)           how much later the same runs were on the wall clock than in virtual time
    dl.plots.cut_points(report.verdicts) where along a run a cut breaks something; report: of `crash_test`
    dl.plots.nested_limits(report)       limits in force inside each other, by design and measured; of `timeouts`
    dl.plots.what_if_frontier(result)    what another deadline would have done to recorded runs; result: of `what_if`
    dl.plots.false_kills(dog)            what a limit of calls kills, and how soon it notices a hang; dog: of `watchdog`
    dl.plots.save_figures(study, "out")  timeline.png and overrun.png
    dl.plots.save_png(plots.overrun(study, ax=plots.OFFSCREEN), "overrun.png")     without a display

look.py shows how every figure looks and which runs are drawn together, files.py writes figures to files. Each other
module has a frame that says what is drawn and a function that draws it.

A study is any object with the DataFrames `runs`, `calls` and `events`; `result` is what
`docmind_lab.findings.agreement` makes of two. Every figure is dark ink on opaque white paper, whatever the style of the
notebook, so that it reads the same on a dark theme.
"""

from docmind_lab.tables.frames import StudyTables
from docmind_lab.views.plots.agreements import agreement, agreement_frame
from docmind_lab.views.plots.completions import completion, completion_frame
from docmind_lab.views.plots.cuts import cut_frame, cut_points
from docmind_lab.views.plots.files import save_figures, save_study
from docmind_lab.views.plots.frontiers import frontier, frontier_frame
from docmind_lab.views.plots.limit_bars import nested_limits
from docmind_lab.views.plots.look import COLOURS, OFFSCREEN, save_png
from docmind_lab.views.plots.overruns import overrun, overrun_frame, overrun_summary
from docmind_lab.views.plots.timelines import lanes_frame, timeline, timeline_frame
from docmind_lab.views.plots.watchdogs import false_kills, false_kills_frame
from docmind_lab.views.plots.what_ifs import what_if_frontier

__all__ = [
    "COLOURS",
    "OFFSCREEN",
    "StudyTables",
    "agreement",
    "agreement_frame",
    "completion",
    "completion_frame",
    "cut_frame",
    "cut_points",
    "false_kills",
    "false_kills_frame",
    "frontier",
    "frontier_frame",
    "lanes_frame",
    "nested_limits",
    "overrun",
    "overrun_frame",
    "overrun_summary",
    "save_figures",
    "save_png",
    "save_study",
    "timeline",
    "timeline_frame",
    "what_if_frontier",
]
