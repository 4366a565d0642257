"""Simulated services: a model server, a vector store and peer agents, whose replies are plans of what to send when.

plan.py             what is done with one request, as data
faults.py           what can go wrong, whom it strikes, how it is written
fault_plans.py      what a fault makes of a plan
scripted_model/     what the model says
openai_service.py   the model server's plans
vector_service.py   the vector store's plans
peers/              peer agents: the A2A SDK's own server behind either door
slots.py            who is served at once, and who waits
log.py              the service's own log
wall_door.py        plays plans over sockets
virtual_door.py     plays plans in virtual time, for clients in the same process
virtual_http.py     the server's end of a connection there, and a plan played over it
connections.py      HTTP connections that are closed when the client neither sends nor reads
server.py           the services as a process of their own
tiny_server.py      a real model server: llama.cpp's, with random weights
"""
