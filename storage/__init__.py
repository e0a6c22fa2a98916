"""Bytes on disk: the log engine under the metadata log and the partition logs."""
