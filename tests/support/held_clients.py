"""A GET request by each HTTP client that a deadline holds. Each returns the text of the answer.

timeout_s: the client's own; None for none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import httpx
import httpx2
import requests
import urllib3

import docmind_lab as dl

Headers = Mapping[str, str] | None
Get = Callable[..., str]
AsyncGet = Callable[..., Awaitable[str]]


def with_httpx(url: str, headers: Headers = None, timeout_s: float | None = None) -> str:
    with httpx.Client(timeout=timeout_s, trust_env=False, follow_redirects=True) as client:
        return client.get(url, headers=headers).text


def with_httpx2(url: str, headers: Headers = None, timeout_s: float | None = None) -> str:
    with httpx2.Client(timeout=timeout_s, trust_env=False, follow_redirects=True) as client:
        return client.get(url, headers=headers).text


def with_transport(url: str, headers: Headers = None) -> str:
    with httpx.Client(timeout=None, transport=dl.transport(), follow_redirects=True) as client:
        return client.get(url, headers=headers).text


def with_transport2(url: str, headers: Headers = None) -> str:
    with httpx2.Client(timeout=None, transport=dl.transport(), follow_redirects=True) as client:
        return client.get(url, headers=headers).text


def with_requests(url: str, headers: Headers = None, timeout_s: float | None = None) -> str:
    with requests.Session() as session:
        session.trust_env = False
        return session.get(url, headers=headers, timeout=timeout_s).text


def with_urllib3(url: str, headers: Headers = None) -> str:
    with urllib3.PoolManager() as pool:
        return pool.request("GET", url, headers=headers).data.decode()


async def with_async_httpx(url: str, headers: Headers = None, timeout_s: float | None = None) -> str:
    async with httpx.AsyncClient(timeout=timeout_s, trust_env=False, follow_redirects=True) as client:
        return (await client.get(url, headers=headers)).text


async def with_async_httpx2(url: str, headers: Headers = None, timeout_s: float | None = None) -> str:
    async with httpx2.AsyncClient(timeout=timeout_s, trust_env=False, follow_redirects=True) as client:
        return (await client.get(url, headers=headers)).text


async def with_async_transport(url: str, headers: Headers = None) -> str:
    async with httpx.AsyncClient(timeout=None, transport=dl.transport(), follow_redirects=True) as client:
        return (await client.get(url, headers=headers)).text


async def with_aiohttp(url: str, headers: Headers = None, timeout_s: float | None = None) -> str:
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as response:
        return await response.text()


def in_a_thread(get: Get) -> AsyncGet:
    """The blocking request in a thread of the event loop."""

    async def awaited(*arguments: Any, **options: Any) -> str:
        return await asyncio.to_thread(get, *arguments, **options)

    awaited.__name__ = f"{get.__name__}_in_a_thread"
    return awaited


BLOCKING: list[Get] = [with_httpx, with_httpx2, with_transport, with_transport2, with_requests, with_urllib3]
ASYNC: list[AsyncGet] = [with_async_httpx, with_async_httpx2, with_async_transport, with_aiohttp]
