"""A scripted model: its replies are computed from the request alone, by rules.

conversation.py   what a chat request holds: question, documents, who has reported, tools on offer
extraction.py     sentences of documents that answer a question, with citations, and checking them
roles.py          what each role does: the supervisor's next hand-over, a route, a plan, a search, an answer, a verdict
variation.py      replies that are not the best, in a share of the calls
research.py, staged.py   the roles of the other systems under a deadline
"""

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.roles import reply_to

__all__ = ["Conversation", "Reply", "ToolCall", "reply_to"]
