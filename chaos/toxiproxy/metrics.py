"""Bytes through each proxy, under Toxiproxy's names. Counted when a link ends, as there."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from chaos.toxiproxy.collection import Collection
from chaos.toxiproxy.proxy import Proxy
from chaos.toxiproxy.toxics import Stream
from kraftlog.metrics import Labels, Registry


def proxy_metrics(collection: Collection) -> Registry:
    registry = Registry()
    for word, bytes_of in (
        ("received", lambda proxy: proxy.bytes_received),
        ("sent", lambda proxy: proxy.bytes_sent),
    ):
        registry.counter_of(
            f"toxiproxy_proxy_{word}_bytes_total",
            f"Bytes {word} on links that have ended.",
            partial(_samples, collection, bytes_of),
        )
    return registry


def _samples(
    collection: Collection, bytes_of: Callable[[Proxy], Counter[Stream]]
) -> Iterator[tuple[Labels, float]]:
    for proxy in collection.proxies.values():
        labels = {"proxy": proxy.name, "listener": proxy.listen, "upstream": proxy.upstream}
        for stream, count in bytes_of(proxy).items():
            yield {**labels, "direction": stream}, count
