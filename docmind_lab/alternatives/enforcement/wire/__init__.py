"""The deadline between processes: what a service does with the time that its caller still waits.

server_limits.py   the smaller of what came and what the service allows, and the refusal of what cannot be met
request.py         the deadline of one request, which leaves the tasks that nobody awaits alone
asgi.py            a middleware for Starlette, FastAPI and every other ASGI application
a2a.py             an executor and an interceptor for agents of the A2A SDK (extra `peers`)
mcp.py             a middleware and a transport for servers and clients of the MCP SDK (extra `mcp`)

None of these is imported here: each needs a package that only its users have.
"""
