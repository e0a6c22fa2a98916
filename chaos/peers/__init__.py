"""The peer: our metadata state machine on PySyncObj's Raft, so that both are broken the same way.

machine          metadata_log's decide and replay, as one deterministic step per command
transport        PySyncObj's messages over gRPC, one stream for each direction of each pair
pysyncobj_node   one process: the Raft, the machine, and a service for clients
cluster          three of them: start, kill, pause, restart
client           create, delete and list topics; each ends ok, fail or unknown
quorums          the peer and our own controllers, as one drill sees both
drill            a load while the leader is taken away, recorded as a history and judged
engine           the drills of the catalog that the peer can play
compare          the same drill on both, in one run: python -P -m chaos.peers
"""
