"""Requests to a server that survive reality: limits, retries, deadlines, a breaker and a budget."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from steelyard.engines._limits import Pace
from steelyard.engines._secrets import Secret
from steelyard.errors import EngineFailedError
from steelyard.formats.jsontext import JsonFault, loads, one_line, strict_loads

RETRIED = frozenset({408, 409, 425, 429})
"""Statuses below 500 that a second try may mend; those from 500 on always may."""
STOPS = {
    401: "the key is refused",
    402: "the account is out of credit",
    403: "the key is missing or may not do this",
}
LONGEST_WAIT = 60.0
HEADERS = (
    "retry-after",
    "retry-after-ms",
    "x-typesafe-request-id",
    "x-request-id",
    "cf-ai-req-id",
    "cf-ray",
    "x-inference-time-ms",
    "server-timing",
)
"""Headers of a reply that are looked at."""


class Rejected(Exception):
    """The server will never answer this request as it is."""


class Unanswered(Exception):
    """The server did not answer, however often it was asked."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is asked.

    Attributes
    ----------
    retries : int
        Further tries after the first.
    attempt_timeout : float
        Seconds one try may take.
    backoff, longest : float
        Seconds before the first retry, doubled each time, and the most; drawn at random below that.
    breaker : int
        So many requests in a row without an answer stop the run.
    requests_per_second, tokens_per_second : float or None
    deadline : float or None
        Seconds the whole run may take.
    max_cost : float or None
        Money the whole run may take.
    max_requests : int or None
    """

    retries: int = 4
    attempt_timeout: float = 60.0
    backoff: float = 0.5
    longest: float = 20.0
    breaker: int = 10
    requests_per_second: float | None = None
    tokens_per_second: float | None = None
    deadline: float | None = None
    max_cost: float | None = None
    max_requests: int | None = None


class Answered(msgspec.Struct, frozen=True):
    """A reply of the server, as JSON, its headers in lower case, and how often it was asked.

    `kept` is for replies that were paid for before.
    """

    body: Any
    headers: dict[str, str]
    attempts: int
    kept: bool = False


class Client:
    """One server, asked politely.

    Parameters
    ----------
    patience : Patience
    secret : Secret
        Struck out of everything that is said.
    """

    def __init__(self, patience: Patience, secret: Secret) -> None:
        self._patience, self._secret = patience, secret
        self._session: aiohttp.ClientSession | None = None
        self._failed_in_a_row = 0
        self._started = time.monotonic()
        self._pace = (Pace(patience.requests_per_second), Pace(patience.tokens_per_second))
        self._requests = 0
        self._places: dict[str, URL] = {}
        self._random = random.Random(0)

    async def open(self, headers: Mapping[str, str]) -> None:
        """Take connections, on which these headers are always sent; the event loop must be running."""
        self._started = time.monotonic()
        connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
        timeout = aiohttp.ClientTimeout(total=self._patience.attempt_timeout)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, headers=headers, cookie_jar=aiohttp.DummyCookieJar()
        )

    async def shut(self) -> None:
        """Give connections back."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str] | None = None, tokens: float = 0.0
    ) -> Answered:
        """Send a body, as often as it takes.

        Raises
        ------
        Rejected
            The server refuses this request for good.
        Unanswered
            It did not answer in all tries.
        EngineFailedError
            The key is refused, the deadline or the budget is over, or nothing is answered any more.
        """
        tries = self._patience.retries + 1
        said = "no answer"
        for attempt in range(1, tries + 1):
            self._check_end()
            for pace, amount in zip(self._pace, (1.0, tokens), strict=True):
                await pace.wait(amount)
            self._requests += 1
            found, wait = await self._once(url, body, headers)
            if not isinstance(found, str):
                self._failed_in_a_row = 0
                return msgspec.structs.replace(found, attempts=attempt)
            said = found
            if attempt < tries:
                await asyncio.sleep(self._wait(attempt, wait))
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= self._patience.breaker:
            raise EngineFailedError(
                f"{self._failed_in_a_row} requests in a row were not answered, the last: {said}; "
                "the same command takes the run up when the server is back"
            )
        raise Unanswered(f"{said}, {tries} tries")

    async def _once(
        self, url: str, body: bytes, headers: Mapping[str, str] | None
    ) -> tuple[Answered | str, float | None]:
        """An answer, or why there is none and how long the server wants to be left alone."""
        assert self._session is not None
        place = self._places.get(url) or self._places.setdefault(url, URL(url, encoded=True))
        try:
            async with self._session.post(place, data=body, headers=headers, allow_redirects=False) as reply:
                content = await reply.read()
                status = reply.status
                names = {name: reply.headers[name] for name in HEADERS if name in reply.headers}
        except TimeoutError:
            return f"no answer in {self._patience.attempt_timeout:g} s", None
        except (aiohttp.ClientError, OSError) as error:
            return self._secret.hidden(f"{type(error).__name__}: {one_line(error, 120)}"), None
        if status == 200:
            try:
                return Answered(loads(content), names, 1), None
            except JsonFault as error:
                return f"the answer is not JSON ({error})", None
        message = self._secret.hidden(f"status {status}: {error_text(content)}")
        if status in STOPS:
            raise EngineFailedError(f"{message}; {STOPS[status]}")
        if status >= 500 or status in RETRIED:
            return message, retry_after(names)
        self._failed_in_a_row = 0
        raise Rejected(message)

    def _wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait: what the server asks for, else a random part of the doubled backoff."""
        if asked is not None:
            return min(asked, LONGEST_WAIT)
        most = min(self._patience.longest, self._patience.backoff * 2.0 ** (attempt - 1))
        return self._random.uniform(0.5 * most, most)

    def _check_end(self) -> None:
        patience = self._patience
        if patience.deadline is not None and time.monotonic() - self._started > patience.deadline:
            raise EngineFailedError(
                f"the run's deadline of {patience.deadline:g} s is over; the same command takes it up"
            )
        if patience.max_requests is not None and self._requests >= patience.max_requests:
            raise EngineFailedError(
                f"the budget of {patience.max_requests} requests is spent; raise max_requests to go on"
            )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server wants to be left alone, from milliseconds, seconds or a date; None without a word.

    >>> retry_after({"retry-after-ms": "250"}), retry_after({"retry-after": "2"}), retry_after({})
    (0.25, 2.0, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        if 0.0 <= seconds < float("inf"):
            return seconds
    try:
        when = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, when.timestamp() - time.time())


def error_text(content: bytes) -> str:
    """What an error body says, in whichever envelope: one line.

    >>> error_text(b'{"error": {"message": "no such model"}}')
    'no such model'
    >>> error_text(b'{"detail": [{"loc": ["body", "state"], "msg": "field required"}]}')
    'body.state: field required'
    """
    try:
        body = strict_loads(content)
    except JsonFault:
        text = content[:400].decode("utf-8", "replace").strip()
        return one_line(text, 120) if text else "without a word"
    return one_line(_said(body) or "without a word", 200)


def _said(body: Any) -> str:
    if isinstance(body, str):
        # An envelope inside the message of an envelope.
        if body.startswith("{"):
            try:
                return _said(strict_loads(body)) or body
            except JsonFault:
                return body
        return body
    if isinstance(body, list):
        return "; ".join(filter(None, map(_said, body[:3])))
    if not isinstance(body, dict):
        return ""
    if "msg" in body:
        place = ".".join(map(str, body.get("loc") or ()))
        return f"{place}: {body['msg']}" if place else str(body["msg"])
    for key in ("error", "errors", "message", "detail", "error_type"):
        if body.get(key):
            return _said(body[key])
    return ""
