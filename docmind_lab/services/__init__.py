"""Simulated services: a model server, a vector store, peer agents, and services that call services.

The replies of the first two are plans of what to send when.

plan.py                Plan: what a service does with one request, as data
faults.py              Fault: what can go wrong, which requests it strikes, its notation
fault_effects.py       what each fault does to a plan
scripted_model/        the model's replies
openai_service.py      the simulated model server
conversation_rules.py  what providers refuse a conversation for
dialects/              in which it is asked: OpenAI, Anthropic, Gemini, Ollama
vector_service.py      the simulated vector store
made_up_points.py      what it answers for a collection that it does not have
endpoints.py           other services that a graph calls: a table that users extend
endpoint_shape.py      what one of them is, is asked, and answers; what none answers, and rows to fill in
search_apis.py         those of search services, which are always there
hosts.py               what systems add: roles of the model, and servers whose work may outlive its connections
hosted_behaviour.py    how peers and hops behave: how long they work, whether they misbehave or hold to a deadline
slots.py               the queue of the model server
log.py                 the service's own log
asgi_messages.py       HTTP as an ASGI application sees it; connections on which nothing happens are closed
plan_player.py         plays one plan, over sockets and in virtual time
door.py                what both doors share: the services, which of them a request is for, slots and queues
wall_door.py           plays plans over sockets
virtual_door.py        plays plans in virtual time, for clients in the same process
virtual_host.py        the server's end of a connection there, and an asyncio server: the peers' and the hops'
server.py              the services as a process of their own
"""
