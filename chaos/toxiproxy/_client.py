"""toxiproxy-python, without what bites.

It keeps its server's address for the whole process, waits for ever, obeys HTTP_PROXY, and does not
notice an answer that is no success unless it is a 400, 404 or 409, of which it makes the wrong
names. So each use of it is alone with its address and with an HTTP client of ours.
"""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import ClassVar

import requests
import toxiproxy
import toxiproxy.api
from toxiproxy.api import APIConsumer

from chaos.toxiproxy.bodies import Json
from kraftlog.errors import AmbiguousError, KraftError

CALL_SECONDS = 30.0  # Toxiproxy gives up on a call of its own after 25

_lock = threading.Lock()


class ToxiproxyRefused(KraftError):
    """The server has answered, and it was not a yes."""

    def __init__(self, status: int, message: str, call: str) -> None:
        super().__init__(f"toxiproxy refused {call} with {status}: {message}")
        self.status = status


class ToxiproxyUnreachable(AmbiguousError):
    """No answer: the call may have been carried out."""


class _Http:
    """What the client uses of `requests`: bounded in time, and strict about answers."""

    exceptions: ClassVar[object] = requests.exceptions

    def __init__(self) -> None:
        self._session = requests.Session()
        self._session.trust_env = False

    def get(self, url: str, params: Mapping[str, str] | None = None) -> requests.Response:
        return self._call("GET", url, params=params)

    def delete(self, url: str) -> requests.Response:
        return self._call("DELETE", url)

    def post(self, url: str, data: bytes | None = None, json: Json = None) -> requests.Response:
        return self._call("POST", url, data=data, json=json)

    def _call(
        self,
        method: str,
        url: str,
        *,
        params: Mapping[str, str] | None = None,
        data: bytes | None = None,
        json: Json = None,
    ) -> requests.Response:
        try:
            answer = self._session.request(
                method, url, params=params, data=data, json=json, timeout=CALL_SECONDS
            )
        except requests.exceptions.RequestException as error:
            raise ToxiproxyUnreachable(
                f"no answer to {method} {url}: {error}",
                hint="look whether the toxiproxy process still runs",
            ) from None
        if not answer.ok:
            raise ToxiproxyRefused(answer.status_code, _message(answer), f"{method} {url}")
        return answer

    def close(self) -> None:
        self._session.close()


def _message(answer: requests.Response) -> str:
    """Errors are JSON whatever their content type says."""
    try:
        body = answer.json()
    except ValueError:
        return answer.text.strip()
    return str(body.get("error", body)) if isinstance(body, dict) else answer.text.strip()


@contextlib.contextmanager
def client(host: str, port: int) -> Iterator[toxiproxy.Toxiproxy]:
    """The client, on this server, alone for a while."""
    with _lock:
        http = _Http()
        before = APIConsumer.host, APIConsumer.port, toxiproxy.api.requests
        APIConsumer.host, APIConsumer.port, toxiproxy.api.requests = host, port, http
        try:
            yield toxiproxy.Toxiproxy()
        finally:
            APIConsumer.host, APIConsumer.port, toxiproxy.api.requests = before
            http.close()
