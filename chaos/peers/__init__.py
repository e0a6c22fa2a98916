"""The peer: our metadata state machine on PySyncObj's Raft, so that both are broken the same way.

machine          metadata_log's decide and replay, as one deterministic step per command
transport        PySyncObj's messages over gRPC, one stream for each direction of each pair
pysyncobj_node   one process: the Raft, the machine, and a service for clients
cluster          three of them: start, kill, pause, restart
client           create, delete and list topics; each ends ok, fail or unknown
drill            a load while the leader is killed, recorded as a history and judged
"""
