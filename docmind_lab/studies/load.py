"""Load studies under their public names."""

from docmind_lab.experiments.load import *  # noqa: F403 - a facade of what that package offers
from docmind_lab.experiments.load import __all__ as __all__
