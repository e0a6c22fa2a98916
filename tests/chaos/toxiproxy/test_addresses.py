import errno

import pytest

from chaos.toxiproxy.addresses import listen_error, resolve, split
from tests.loops import run


@pytest.mark.parametrize(
    ("address", "resolved"),
    [
        ("127.0.0.1:80", "127.0.0.1:80"),
        ("localhost:80", "127.0.0.1:80"),
        ("[::1]:80", "[::1]:80"),
        (":80", "127.0.0.1:80"),
        ("", "127.0.0.1:0"),
    ],
)
def test_resolve(address: str, resolved: str) -> None:
    assert run(resolve(address)) == resolved


@pytest.mark.parametrize("address", ["x", "127.0.0.1:", "127.0.0.1:-1", "127.0.0.1:65536", "a:b:1"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(OSError, match="listen tcp"):
        run(resolve(address))


def test_split_takes_the_brackets_off() -> None:
    assert split("[::1]:80") == ("::1", "80")


def test_an_error_has_the_words_of_the_real_server() -> None:
    error = listen_error("127.0.0.1:80", OSError(errno.EACCES, "denied"))
    assert str(error) == "listen tcp 127.0.0.1:80: bind: permission denied"
