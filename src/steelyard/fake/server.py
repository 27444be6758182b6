"""The fake server itself: loopback only, bounded, ending by itself."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

from aiohttp import web

from steelyard.fake.answers import Body, Refused, chatted, decisions, judged, read_state, system_one
from steelyard.fake.quirks import Quirks, share
from steelyard.formats.jsontext import JsonFault, dumps, loads

KNOWN = ("", "fake-1", "jev-1.13.0", "gpt-6-luna", "clef", "typesafe-ai/jev", "english")
MOST_BYTES = 8 << 20


class FakeServer:
    """Answers every decision wire, with quirks.

    Parameters
    ----------
    quirks : Quirks, optional

    Attributes
    ----------
    asked, answered : int
        Requests that came in, and those that were answered with 200.
    seen : Counter
        How often each body came.
    most_at_once : int
        Largest number of requests in hand at the same time.

    Examples
    --------
    >>> with FakeServer() as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, quirks: Quirks | None = None) -> None:
        self.quirks = quirks or Quirks()
        self.url = ""
        self.asked = self.answered = self.most_at_once = 0
        self.seen: Counter[bytes] = Counter()
        self._at_once = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> FakeServer:
        self._thread = threading.Thread(target=lambda: asyncio.run(self.serve(0)), daemon=True)
        self._thread.start()
        self._ready.wait(10.0)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not None:
            self._thread.join(10.0)

    async def serve(self, port: int, seconds: float | None = None) -> None:
        """Serve on this machine until told to stop, or for so many seconds."""
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_get("/health", self._health)
        app.router.add_post("/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            pass
        finally:
            await runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            if self.quirks.latency_ms:
                await asyncio.sleep(self.quirks.latency_ms / 1000.0)
            content = await request.read()
            self.seen[content] += 1
            refused = self._unwelcome(request) or await self._fault(request, content)
            if refused is not None:
                return refused
            try:
                reply = self._reply(request, loads(content), self.seen[content])
            except Refused as error:
                return _json(_complaint(request.path, error.text), error.status)
            except (JsonFault, AttributeError, TypeError, ValueError) as error:
                return _json(_complaint(request.path, f"request body must be valid JSON ({error})"), 400)
            self.answered += 1
            return await self._sent(request, reply)
        finally:
            self._at_once -= 1

    def _unwelcome(self, request: web.Request) -> web.Response | None:
        key = self.quirks.key
        sent = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get(
            "x-api-key", ""
        )
        if not key or sent == key:
            return None
        # Servers like to repeat what they were sent.
        status = 401 if sent else self.quirks.missing_key
        return _json(_complaint(request.path, f"invalid key {sent}" if sent else "missing key"), status)

    async def _fault(self, request: web.Request, content: bytes) -> web.StreamResponse | None:
        quirks, turn = self.quirks, self.seen[content]
        if not quirks.fault_rate or turn > quirks.fault_run:
            return None
        if share(quirks.seed, content, turn, "fault") >= quirks.fault_rate:
            return None
        kinds = quirks.faults.split("+")
        kind = kinds[int(share(quirks.seed, content, turn, "kind") * len(kinds))]
        if kind == "drop":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if kind == "cut":
            response = web.StreamResponse(
                headers={"content-length": "5000", "content-type": "application/json"}
            )
            await response.prepare(request)
            await response.write(b'{"answers": {')
            assert request.transport is not None
            request.transport.close()
            return response
        if kind == "html504":
            return web.Response(
                status=504, text="<html><body>Gateway Time-out</body></html>", content_type="text/html"
            )
        headers = {}
        if kind in ("429", "503") and quirks.retry_after:
            ms = quirks.retry_after.startswith("ms:")
            headers["retry-after-ms" if ms else "retry-after"] = quirks.retry_after.removeprefix("ms:")
        return _json(_complaint(request.path, "overloaded"), int(kind), headers)

    def _reply(self, request: web.Request, body: Any, turn: int) -> Body:
        quirks, path = self.quirks, request.path
        if path.endswith("/chat/completions"):
            usage = {"prompt_tokens": 50, "completion_tokens": 1}
            found = {"model": body.get("model") or "fake-1"} | chatted(body, quirks, turn)
            return found if quirks.missing_usage else found | {"usage": usage}
        model = body.get("model") or request.headers.get("ai-model-id") or ""
        if quirks.unknown_model == "refuse" and model not in KNOWN:
            raise Refused(404, f"unknown model '{model}'")
        state = body.get("input", body.get("context", body.get("state")))
        if path.endswith("/batch"):
            states = body.get("states") or []
            results = [self._one(path, body, state, model, turn) for state in states]
            return {"results": results[:-1] if quirks.short_batches else results}
        found = self._one(path, body, state, model, turn)
        if path.startswith("/ai/run/") or "/ai/run/" in path:
            return {"result": found, "success": True, "errors": [], "messages": []}
        return found

    def _one(self, path: str, body: Any, state: Any, model: str, turn: int) -> Body:
        quirks = self.quirks
        text, cut = read_state(state, quirks)
        every = quirks.reject_every
        if every and int(share(quirks.seed, text, "reject") * every) == 0:
            raise Refused(422, "state is not acceptable")
        usage: Body = {"input_tokens": 20 + len(text) // 4, "output_tokens": 0}
        if cut and quirks.says_truncated:
            usage["truncated"] = True
        found: Body = {"model": model if model in KNOWN and model else "fake-1"}
        if path.endswith("/judge"):
            found["results"] = judged(body.get("checks"), text, quirks, turn)
        elif isinstance(body.get("questions"), list):
            found["answers"] = decisions(body["questions"], text, quirks, turn)
        else:
            found["answers"] = system_one(body.get("questions"), text, quirks, turn)
        if path.endswith("/evaluation-model"):
            usage = {"inputTokens": usage["input_tokens"], "outputTokens": 0}
        return found if quirks.missing_usage else found | {"usage": usage}

    async def _sent(self, request: web.Request, reply: Body) -> web.StreamResponse:
        headers = {"x-request-id": f"fake-{self.asked}", "server-timing": "inference;dur=1.5"}
        if not self.quirks.drip_ms:
            return _json(reply, 200, headers)
        content = dumps(reply)
        response = web.StreamResponse(headers=headers | {"content-type": "application/json"})
        await response.prepare(request)
        step = max(1, len(content) // 10)
        for start in range(0, len(content), step):
            await response.write(content[start : start + step])
            await asyncio.sleep(self.quirks.drip_ms / 1000.0)
        return response


def _json(body: Body, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=dumps(body), status=status, headers=headers, content_type="application/json")


def _complaint(path: str, text: str) -> Body:
    """An error in the envelope of the wire it came over."""
    if "/ai/run/" in path:
        inner = dumps({"error": {"message": text}}).decode()
        return {"success": False, "errors": [{"code": 5012, "message": inner}]}
    if path.endswith("/decisions") or path.endswith("/judge"):
        return {"error": {"code": "bad", "message": text}}
    return {"detail": text}
