"""A `requests` session that sends to the host of the address and to no other."""

from __future__ import annotations

import requests


def direct_session() -> requests.Session:
    """Return a session without the environment's proxies and credentials, which fails at a redirect.

    For exporters of other libraries, which take a session of `requests` and would follow both.
    """
    session = requests.Session()
    session.trust_env = False
    session.hooks["response"].append(_refuse_redirect)
    return session


def _refuse_redirect(response: requests.Response, *_: object, **__: object) -> None:
    if response.is_redirect:
        response.close()
        raise requests.TooManyRedirects("a redirect is not followed: it may lead to a host that is not allowed")
