"""Own latencies: from what a user has measured to a latency profile, and how well it fits.

    LatencyProfile.fit("calls.csv", columns={"latency_s": "duration_ms:ms", "output_tokens": "tokens"})

sources.py     what is read how: a frame, a file, a study
columns.py     a user's columns as ours: names, units, what is complete
study_calls.py the calls table of a study
spans.py       OTLP JSON spans with the gen_ai conventions
calls.py       observed calls, one row each, whatever they were read from
decompose.py       what a call's latency is made of: first token, tokens, search
pace.py        how latencies grow with tokens where no first token is recorded
sessions.py    how much of a call's slowness is its session's
families.py    censored maximum likelihood for four families
durations.py   one kind of duration: what was observed, what fits, which quantiles
fitting.py     fit_profile
files.py       a profile in a file

A call that was cut by a timeout has no latency: it is known to be longer, and counts so (right-censored).
"""
