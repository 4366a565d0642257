"""The rungs of the ladder, each a node of its graph.

primary.py      the agent, with tools and a timeout
suggested.py    calls that it wrote into its last message
generated.py    calls made up from what it said and from the text
forced.py       the least there is to write
finalize.py     evidence, relations once more, and what came of it all
"""

from docmind_lab.workloads.staged.stages.finalize import finalize
from docmind_lab.workloads.staged.stages.forced import forced
from docmind_lab.workloads.staged.stages.generated import generated
from docmind_lab.workloads.staged.stages.primary import PROMPT, Primary
from docmind_lab.workloads.staged.stages.suggested import suggested

__all__ = ["PROMPT", "Primary", "finalize", "forced", "generated", "suggested"]
