"""Latency profiles: drawing latencies from them, and fitting them to a user's measurements.

    LatencyProfile.fit("calls.csv", columns={"latency_s": "duration_ms:ms", "output_tokens": "tokens"})

quantiles.py       quantiles of a duration, and the evidence for fitted ones
profile.py         latency profiles, also by role; dependence.py how calls of one run are slow together
observed_calls.py  observed calls, one row each, of a frame, a file, or an export of a tracing tool (traces/importers)
sessions.py        how much of a call's slowness is its session's
families.py        censored maximum likelihood for four families
durations.py       one kind of duration: what was observed, what fits, which quantiles
fitting.py         what a call's latency is made of, and the tables of a profile, fitted to observed calls

A call that was cut by a timeout has no latency: it is known to be longer, and counts so (right-censored).
"""
