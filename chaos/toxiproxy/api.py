"""Toxiproxy's HTTP API: which call is which, and how it is answered."""

import re
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from chaos.toxiproxy import bodies
from chaos.toxiproxy.bodies import ApiError, Json
from chaos.toxiproxy.collection import Collection, show, show_toxic
from chaos.toxiproxy.http_server import JSON, TEXT, Request, Response
from kraftlog.metrics import Registry

VERSION = "2.12.0-kraftlog"

_Call = Callable[[Request, tuple[str, ...]], Awaitable[Response]]
_NAME = "([^/]+)"


def _answer(value: Json, status: int = 200) -> Response:
    return Response(status, bodies.dump(value))


_DONE = Response(204)


@dataclass(slots=True)
class Api:
    collection: Collection
    metrics: Registry | None = None
    """None: nobody asked for them, and there is no such path."""

    async def handle(self, request: Request) -> Response:
        response = await self._answer_to(request)
        marked = {"X-Toxiproxy-Request-Id": uuid.uuid4().hex[:20]}
        return replace(response, headers={**response.headers, **marked})

    async def _answer_to(self, request: Request) -> Response:
        methods, names = self._find(request.path)
        if methods is None:
            return Response(404, b"404 page not found\n", TEXT)
        if request.method not in methods:
            return Response(405)
        if request.headers.get("user-agent", "").startswith("Mozilla/"):
            return Response(403, b"User agent not allowed\n", TEXT)
        try:
            return await methods[request.method](request, names)
        except ApiError as error:
            return Response(error.status, bodies.dump(error.body()) + b"\n", TEXT)

    def _find(self, path: str) -> tuple[dict[str, _Call] | None, tuple[str, ...]]:
        for pattern, methods in self._routes().items():
            if found := re.fullmatch(pattern, path):
                return methods, found.groups()
        return None, ()

    def _routes(self) -> dict[str, dict[str, _Call]]:
        proxy, toxic = f"/proxies/{_NAME}", f"/proxies/{_NAME}/toxics/{_NAME}"
        routes: dict[str, dict[str, _Call]] = {
            "/version": {"GET": self._version},
            "/reset": {"POST": self._reset},
            "/populate": {"POST": self._populate},
            "/proxies": {"GET": self._proxies, "POST": self._create},
            proxy: {
                "GET": self._show,
                "POST": self._update,
                "PATCH": self._update,
                "DELETE": self._delete,
            },
            f"{proxy}/toxics": {"GET": self._toxics, "POST": self._add_toxic},
            toxic: {
                "GET": self._show_toxic,
                "POST": self._update_toxic,
                "PATCH": self._update_toxic,
                "DELETE": self._remove_toxic,
            },
        }
        if self.metrics is not None:
            routes["/metrics"] = {"GET": self._metrics}
        return routes

    async def _version(self, _request: Request, _names: tuple[str, ...]) -> Response:
        body = f'{{"version": "{VERSION}"}}\n'.encode()
        return Response(200, body, f"{JSON};charset=utf-8")

    async def _metrics(self, _request: Request, _names: tuple[str, ...]) -> Response:
        text = self.metrics.text() if self.metrics is not None else ""
        return Response(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    async def _reset(self, _request: Request, _names: tuple[str, ...]) -> Response:
        await self.collection.reset()
        return _DONE

    async def _populate(self, request: Request, _names: tuple[str, ...]) -> Response:
        return _answer(await self.collection.populate(bodies.parse(request.body)), 201)

    async def _proxies(self, _request: Request, _names: tuple[str, ...]) -> Response:
        return _answer(self.collection.list_all())

    async def _create(self, request: Request, _names: tuple[str, ...]) -> Response:
        return _answer(await self.collection.create(bodies.parse(request.body)), 201)

    async def _show(self, _request: Request, names: tuple[str, ...]) -> Response:
        return _answer(show(self.collection.find(names[0])))

    async def _update(self, request: Request, names: tuple[str, ...]) -> Response:
        self.collection.find(names[0])
        return _answer(await self.collection.update(names[0], bodies.parse(request.body)))

    async def _delete(self, _request: Request, names: tuple[str, ...]) -> Response:
        await self.collection.delete(names[0])
        return _DONE

    async def _toxics(self, _request: Request, names: tuple[str, ...]) -> Response:
        return _answer([show_toxic(toxic) for toxic in self.collection.find(names[0]).toxics()])

    async def _add_toxic(self, request: Request, names: tuple[str, ...]) -> Response:
        self.collection.find(names[0])
        return _answer(self.collection.add_toxic(names[0], bodies.parse(request.body)))

    async def _show_toxic(self, _request: Request, names: tuple[str, ...]) -> Response:
        return _answer(show_toxic(self.collection.find_toxic(*names)))

    async def _update_toxic(self, request: Request, names: tuple[str, ...]) -> Response:
        proxy, toxic = names
        self.collection.find_toxic(proxy, toxic)
        return _answer(self.collection.update_toxic(proxy, toxic, bodies.parse(request.body)))

    async def _remove_toxic(self, _request: Request, names: tuple[str, ...]) -> Response:
        self.collection.remove_toxic(*names)
        return _DONE
