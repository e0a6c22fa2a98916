"""The proxies of a server: what each call of the API does to them."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from chaos.toxiproxy import bodies, toxics
from chaos.toxiproxy.bodies import ApiError, Json
from chaos.toxiproxy.link import StartTask
from chaos.toxiproxy.names import name_problem
from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.toxics import ATTRIBUTES, STREAMS, Toxic


def show_toxic(toxic: Toxic) -> dict[str, Json]:
    return {
        "attributes": {**toxic.attributes},
        "name": toxic.name,
        "type": toxic.kind,
        "stream": toxic.stream,
        "toxicity": toxic.toxicity,
    }


def show(proxy: Proxy) -> dict[str, Json]:
    """`Logger` is a field that Toxiproxy shows by accident; its clients ignore it."""
    return {
        "name": proxy.name,
        "listen": proxy.listen,
        "upstream": proxy.upstream,
        "enabled": proxy.is_enabled,
        "Logger": {},
        "toxics": [show_toxic(toxic) for toxic in proxy.toxics()],
    }


class PartlyPopulated(ApiError):
    """Populating has failed; these proxies were made before."""

    def __init__(self, error: ApiError, made: list[Json] | None) -> None:
        super().__init__(error.status, error.message)
        self.made = made

    def body(self) -> dict[str, Json]:
        return {**super().body(), "proxies": self.made}


@dataclass(slots=True)
class Collection:
    start_task: StartTask
    dice: random.Random
    proxies: dict[str, Proxy] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """A call that waits for a socket must not find another one's half-made proxies."""

    def find(self, name: str) -> Proxy:
        if name not in self.proxies:
            raise ApiError(404, "proxy not found")
        return self.proxies[name]

    def find_toxic(self, name: str, toxic_name: str) -> Toxic:
        toxic = self.find(name).find_toxic(toxic_name)
        if toxic is None:
            raise ApiError(404, "toxic not found")
        return toxic

    def list_all(self) -> Json:
        return {name: show(proxy) for name, proxy in self.proxies.items()}

    async def create(self, body: Json) -> Json:
        fields = bodies.parse_object(body)
        proxy = self._proxy(fields, "")
        enabled = bodies.bool_field(fields, "enabled", default=True)
        async with self._lock:
            if proxy.name in self.proxies:
                raise ApiError(409, "proxy already exists")
            if enabled:
                await _start(proxy)
            self.proxies[proxy.name] = proxy
            return show(proxy)

    def _proxy(self, fields: Mapping[str, Json], where: str) -> Proxy:
        name = bodies.text_field(fields, "name", "")
        listen = bodies.text_field(fields, "listen", "")
        upstream = bodies.text_field(fields, "upstream", "")
        if not name:
            raise bodies.missing(f"name{where}")
        if not upstream:
            raise bodies.missing(f"upstream{where}")
        _check_name(name)
        return Proxy(name, listen, upstream, self.start_task, self.dice)

    async def populate(self, body: Json) -> Json:
        """All are looked at before the first is made."""
        try:
            inputs = [bodies.parse_object(one) for one in bodies.parse_list(body)]
            new = [
                (
                    self._proxy(fields, f" at proxy {number}"),
                    bodies.bool_field(fields, "enabled", default=True),
                )
                for number, fields in enumerate(inputs, start=1)
            ]
        except ApiError as error:
            raise PartlyPopulated(error, None) from None
        made: list[Json] = []
        async with self._lock:
            for proxy, enabled in new:
                try:
                    made.append(show(await self._add_or_replace(proxy, enabled=enabled)))
                except ApiError as error:
                    raise PartlyPopulated(error, made or None) from None
        return {"proxies": made or None}

    async def _add_or_replace(self, proxy: Proxy, *, enabled: bool) -> Proxy:
        existing = self.proxies.get(proxy.name)
        if existing is not None:
            try:
                if not await existing.differs(proxy.listen, proxy.upstream):
                    return existing
            except OSError as error:
                raise ApiError(500, str(error)) from None
            existing.stop()
        if enabled:
            await _start(proxy)
        self.proxies[proxy.name] = proxy
        return proxy

    async def update(self, name: str, body: Json) -> Json:
        proxy = self.find(name)
        fields = bodies.parse_object(body)
        async with self._lock:
            listen = bodies.text_field(fields, "listen", proxy.listen)
            upstream = bodies.text_field(fields, "upstream", proxy.upstream)
            enabled = bodies.bool_field(fields, "enabled", default=proxy.is_enabled)
            try:
                await proxy.update(listen, upstream, enabled=enabled)
            except OSError as error:
                raise ApiError(500, str(error)) from None
            return show(proxy)

    async def delete(self, name: str) -> None:
        async with self._lock:
            self.find(name).stop()
            del self.proxies[name]

    async def reset(self) -> None:
        async with self._lock:
            for proxy in self.proxies.values():
                await _start(proxy)
                proxy.reset_toxics()

    def add_toxic(self, name: str, body: Json) -> Json:
        proxy = self.find(name)
        fields = bodies.parse_object(body)
        kind = bodies.text_field(fields, "type", "")
        stream = bodies.text_field(fields, "stream", "downstream")
        toxicity = bodies.float_field(fields, "toxicity", 1.0)
        if stream.lower() not in STREAMS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        toxic_name = bodies.text_field(fields, "name", "") or f"{kind}_{stream}"
        if kind not in ATTRIBUTES:
            raise ApiError(400, "invalid toxic type")
        _check_name(toxic_name)
        if proxy.find_toxic(toxic_name) is not None:
            raise ApiError(409, "toxic already exists")
        zeros = dict.fromkeys(ATTRIBUTES[kind], 0)
        toxic = Toxic(kind, toxic_name, stream, toxicity, _attributes(kind, fields, zeros))
        proxy.add_toxic(toxic)
        return show_toxic(toxic)

    def update_toxic(self, name: str, toxic_name: str, body: Json) -> Json:
        toxic = self.find_toxic(name, toxic_name)
        fields = bodies.parse_object(body)
        attributes = _attributes(toxic.kind, fields, toxic.attributes)
        toxic.toxicity = bodies.float_field(fields, "toxicity", toxic.toxicity)
        toxic.attributes = attributes
        self.find(name).toxic_changed(toxic)
        return show_toxic(toxic)

    def remove_toxic(self, name: str, toxic_name: str) -> None:
        self.find(name).remove_toxic(self.find_toxic(name, toxic_name))

    def stop_all(self) -> None:
        for proxy in self.proxies.values():
            proxy.stop()


async def _start(proxy: Proxy) -> None:
    try:
        await proxy.start()
    except OSError as error:
        raise ApiError(500, str(error)) from None


def _check_name(name: str) -> None:
    if found := name_problem(name):
        raise ApiError(400, found)


def _attributes(
    kind: str, fields: Mapping[str, Json], present: Mapping[str, int]
) -> dict[str, int]:
    given = bodies.parse_object(fields.get("attributes"))
    merged = {name: bodies.int_field(given, name, value) for name, value in present.items()}
    if found := toxics.problem(kind, merged):
        raise ApiError(400, found)
    return merged
