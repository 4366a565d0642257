"""How true a replay is to what it recorded, under its public names."""

from docmind_lab.experiments.recordings.fidelity import (
    Fidelity,
    Promise,
    fidelity,
    fidelity_frame,
    fidelity_plot,
    promise,
)

__all__ = ["Fidelity", "Promise", "fidelity", "fidelity_frame", "fidelity_plot", "promise"]
