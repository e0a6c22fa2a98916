"""As much of an HTTP/1.1 server as an API on the loopback interface needs."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote, urlsplit

from chaos.toxiproxy.bodies import ApiError, dump

HEAD_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 1 << 20
READ_SECONDS = 15.0
IDLE_SECONDS = 60.0

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Response]]


class BadRequest(Exception):
    """What came is not HTTP; the connection ends after the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.response = Response(status, dump(ApiError(status, message).body()), TEXT)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequest(400, "malformed HTTP request")
    headers = {}
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, "malformed HTTP header")
        headers[name.strip().lower()] = value.strip()
    try:
        path = unquote(urlsplit(words[1]).path)
    except ValueError:
        raise BadRequest(400, "malformed HTTP target") from None
    if words[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return words[0], path, headers


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next one; None if the client has gone."""
    try:
        async with asyncio.timeout(IDLE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequest(431, "the header is too large") from None
    except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
        return None
    method, path, headers = _parse_head(head)
    try:
        async with asyncio.timeout(READ_SECONDS):
            return Request(method, path, headers, await _read_body(reader, headers))
    except asyncio.LimitOverrunError:
        raise BadRequest(400, "malformed chunked body") from None
    except (asyncio.IncompleteReadError, TimeoutError, ConnectionError):
        return None


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    length = _size(headers.get("content-length", "0"), 10)
    if length > BODY_BYTES_MAX:
        raise BadRequest(413, f"a body of {length} bytes is more than {BODY_BYTES_MAX}")
    return await reader.readexactly(length)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = _size(line.partition(b";")[0].decode("latin-1").strip(), 16)
        if len(body) + size > BODY_BYTES_MAX:
            raise BadRequest(413, f"a body of more than {BODY_BYTES_MAX} bytes")
        body += (await reader.readexactly(size + 2))[:size]
        if size == 0:
            return body


def _size(text: str, base: int) -> int:
    digits = "0123456789abcdefABCDEF"[: 10 if base == 10 else None]
    if not text or len(text) > 16 or set(text) - set(digits):
        raise BadRequest(400, f"malformed length {text[:20]!r}")
    return int(text, base)


def _encode(response: Response, *, closes: bool) -> bytes:
    headers = {"Content-Length": str(len(response.body)), **response.headers}
    if response.body:
        headers["Content-Type"] = response.content_type
    if closes:
        headers["Connection"] = "close"
    try:
        phrase = HTTPStatus(response.status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {response.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + response.body


async def _answer_one(
    handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """Whether there may be another."""
    try:
        request = await _read_request(reader)
        if request is None:
            return False
        closes = request.headers.get("connection", "").lower() == "close"
        response = await handler(request)
    except BadRequest as error:
        closes, response = True, error.response
    writer.write(_encode(response, closes=closes))
    await writer.drain()
    return not closes


async def serve_connection(
    handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer one client's requests, one after the other."""
    with suppress(ConnectionError):
        while await _answer_one(handler, reader, writer):
            pass
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def listen(handler: Handler, host: str, port: int) -> asyncio.Server:
    return await asyncio.start_server(
        lambda reader, writer: serve_connection(handler, reader, writer),
        host,
        port,
        limit=HEAD_BYTES_MAX,
    )
