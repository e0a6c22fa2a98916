"""Brokers: partition logs, their replication, and the requests of clients."""
