import pytest

from chaos.live.backends import open_proxies
from kraftlog.errors import ConfigError, NotYetSupported


def test_without_proxies_an_edge_is_direct_and_cannot_be_broken() -> None:
    with open_proxies("process", 1) as (proxies, pid):
        assert pid is None
        assert proxies.create("c1__b1", "127.0.0.1:9") == "127.0.0.1:9"
        proxies.reset()
        for act in (proxies.cut, proxies.enable):
            with pytest.raises(NotYetSupported, match="c1__b1 cannot be broken"):
                act("c1__b1")
        with pytest.raises(NotYetSupported, match="use --backend embedded"):
            proxies.add_toxic("c1__b1", "latency", latency=1)


def test_a_backend_that_is_not_there_is_named() -> None:
    with (
        pytest.raises(ConfigError, match="'magic' is no backend"),
        open_proxies("magic", 1),
    ):
        pass
