"""Toxiproxy: faults on the wire. Our own server, and a wrapper that drives it or the real one.

The server speaks Toxiproxy's HTTP API and breaks live TCP connections as Toxiproxy does, without
the Go toolchain, and with dice that a seed replays. To read it:

    wrapper      what drills use: start a server, make proxies, cut and poison them
    real, _client    the real server as a process; toxiproxy-python with its quirks hidden

    buffers      chunks between two stages; a chunk is always in exactly one buffer
    toxics       what each toxic does with them
    link         one direction of a connection: source, stages, sink
    proxy        a listener and its connections
    collection   the proxies of a server
    bodies       JSON as Go reads it
    http_server, api, cli    the HTTP API and the process around it

Where it differs from Toxiproxy 2.12 on purpose: the inputs that kill the real server and names that
could never be fetched again are refused with 400; `--seed` seeds; a body is at most 1 MiB; a listen
address without a host is a loopback address; no call waits for a peer that does not read.
"""
