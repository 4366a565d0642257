"""A scripted model: its replies are computed from the request alone, by rules.

conversation.py   a parsed chat request: question, documents, reports, tools on offer
extraction.py     answers built from sentences of documents, with citations, and their check
roles.py          what each role does: the supervisor's next hand-over, a route, a plan, a search, an answer, a verdict
variation.py      worse replies than the best, in a share of the calls
any_agent.py      an agent of any framework: call a tool once, then answer from its result
research.py, staged.py   the roles of the other systems under a deadline
"""

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.roles import reply_to

__all__ = ["Conversation", "Reply", "ToolCall", "reply_to"]
