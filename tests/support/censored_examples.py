"""Two small samples of times, some censored, whose statistics are known: one from a textbook, one worked by hand."""

from __future__ import annotations

import numpy as np

from docmind_lab.statistics.answer_times import ANSWERED, CENSORED, COMPETING, AnswerTimes

# The 6-mercaptopurine arm of Freireich et al. (1963), as in Klein and Moeschberger (2003), table 1.2: weeks.
RELAPSES = (6, 6, 6, 7, 10, 13, 16, 22, 23)
STILL_WELL = (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)
LEUKAEMIA = AnswerTimes(np.array(RELAPSES + STILL_WELL, dtype=float), np.array([ANSWERED] * 9 + [CENSORED] * 12))

# Worked by hand: 6 runs at risk, an answer; 5, a failure; 4, an answer; 3, cut; 2, an answer; 1, cut.
# Open before: 1, 5/6, 2/3, 1/2, 1/2, 1/4. Share: 1/6, 1/6, 1/6 + 2/3 × 1/4, same, 1/3 + 1/2 × 1/2, same.
WORKED = AnswerTimes(np.arange(1.0, 7.0), np.array([ANSWERED, COMPETING, ANSWERED, CENSORED, ANSWERED, CENSORED]))
