"""Addresses as Go reads and writes them."""

import asyncio
import errno
import socket

LOOPBACK = "127.0.0.1"
_WORDS = {
    errno.EADDRINUSE: "address already in use",
    errno.EADDRNOTAVAIL: "cannot assign requested address",
    errno.EACCES: "permission denied",
}


def split(address: str) -> tuple[str, str]:
    """Host and port; the host of an IPv6 address without its brackets."""
    host, colon, port = address.rpartition(":")
    if not colon:
        raise OSError(f"listen tcp: address {address}: missing port in address")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], port
    if ":" in host:
        raise OSError(f"listen tcp: address {address}: too many colons in address")
    return host, port


async def resolve(address: str) -> str:
    """With a number for its host. Without a host, or empty: an address that only we can reach."""
    host, port = split(address or ":0")
    if not port.isascii() or not port.isdigit() or int(port) > 0xFFFF:
        raise OSError(f"listen tcp: address {address}: invalid port")
    if not host:
        return f"{LOOPBACK}:{port}"
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host, int(port), type=socket.SOCK_STREAM
        )
    except (OSError, UnicodeError):
        raise OSError(f"listen tcp: lookup {host}: no such host") from None
    number = str(min(found, key=lambda info: info[0] != socket.AF_INET)[4][0])
    return f"[{number}]:{port}" if ":" in number else f"{number}:{port}"


def listen_error(address: str, error: OSError) -> OSError:
    words = _WORDS.get(error.errno or 0, error.strerror or str(error))
    return OSError(f"listen tcp {address}: bind: {words}")
