"""Load studies under their public names."""

from docmind_lab.experiments.load import (
    Arrivals,
    Constant,
    LoadDesign,
    LoadStudy,
    LoadTable,
    Poisson,
    Trace,
    goodput_differences,
    load_options,
    load_summary,
    replicate_measures,
    run_load,
    run_load_design,
)

__all__ = [
    "Arrivals",
    "Constant",
    "LoadDesign",
    "LoadStudy",
    "LoadTable",
    "Poisson",
    "Trace",
    "goodput_differences",
    "load_options",
    "load_summary",
    "replicate_measures",
    "run_load",
    "run_load_design",
]
