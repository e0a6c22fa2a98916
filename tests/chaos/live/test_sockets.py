import os
import socket

import pytest

from chaos.live.sockets import ProxyBypassed, bypasses, check_no_bypass, connections, socket_inodes

TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt  uid inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1
   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 12 1
   2: 0100007F:C002 0100007F:1F91 06 00000000:00000000 00:00000000 00000000     0        0 13 1
"""


def test_only_open_connections_count() -> None:
    (found,) = connections(TABLE)
    assert (found.local_port, found.remote_port, found.inode) == (0xC001, 0x1F90, 12)


def test_a_direct_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as connection:
            assert os.fstat(connection.fileno()).st_ino in socket_inodes(os.getpid())
            ours = {"c1": os.getpid()}
            (found,) = bypasses(ours, {port: "b1"})
            assert f"port {port} of b1" in found
            with pytest.raises(ProxyBypassed, match="1 connections go around"):
                check_no_bypass(ours, {port: "b1"})
            assert bypasses({"b1": os.getpid()}, {port: "b1"}) == []  # its own
            check_no_bypass(ours, {})


def test_a_process_that_is_gone_has_none() -> None:
    assert socket_inodes(2**22 + 1) == set()
