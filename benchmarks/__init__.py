"""The project's own costs, as ratios within one run: `make bench`; and two experiments of the notebooks.

`__main__.NAMES` lists the benchmarks. peer_races and peer_chaos (notebook 09) are not among them: they are imported.
All of it belongs to the repository and is not in the wheel.
"""
