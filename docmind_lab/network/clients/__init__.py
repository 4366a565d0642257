"""Client libraries that the lab did not build: each has an adapter, which observes its requests and holds them.

watching.py     who observes the requests of the calling code, and what they are held to
httpx.py        httpx and httpx2, over httpcore and httpcore2: observed and held
http_client.py  http.client and urllib3, and so requests: observed, and held
held_socket.py  a blocking socket whose waits end with the hold in force
aiohttp.py      aiohttp: observed, and held
in_memory.py    connections without a socket, whose requests httpx sends
installing.py   the adapters of all libraries, for a run of the lab

Production installs an adapter's `hold`; the lab installs the same, and `observe` in addition.
"""
