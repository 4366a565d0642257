"""An alternative that does not ship with the package: for the test that one needs a row and a class only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from docmind_lab.alternatives import HardTimeout
from docmind_lab.core.alternative_catalogue import Entry


@dataclass(frozen=True)
class Eighth(HardTimeout):
    """A hard timeout under another name."""

    name: ClassVar[str] = "eighth"


ROW = Entry(
    home="eighth_alternative:Eighth",
    letter="H",
    colour="#123456",
    price="nothing but a test",
    why_work_goes_on="it is B by another name",
    variants={"naive": {"naive": True}},
    mistakes=("naive",),
)
