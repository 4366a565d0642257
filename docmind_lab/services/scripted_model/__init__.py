"""A scripted model: its replies are computed from the request alone, by rules.

conversation.py    a parsed chat request: question, documents, reports, tools on offer
extraction.py      answers built from sentences of documents, with citations, and their check
scripted_roles.py  what each role does: the supervisor's next hand-over, a route, a plan, a search, an answer, a verdict
variation.py       worse replies than the best, in a share of the calls and when little time is left
any_agent.py       an agent of any framework, or of a user's own: call tools, then answer from what they returned
schema_values.py   values that are valid under a JSON schema
field_texts.py     texts for arguments and fields, by their names
schema_rules.py    what a schema asks of a value: bounds, lengths, schemas put together
decisions.py       choices between options, made so that every loop ends
text_protocols.py replies in the protocols that prompts describe in words
shown_json.py  the JSON that a prompt describes, as a schema
tokens.py      the model's own tokenizer
"""

from docmind_lab.services.scripted_model.conversation import Conversation, Reply, ToolCall
from docmind_lab.services.scripted_model.scripted_roles import reply_to

__all__ = ["Conversation", "Reply", "ToolCall", "reply_to"]
