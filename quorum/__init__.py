"""The controller quorum: Raft with pull replication over gRPC."""
