"""What helps others to test with kraftlog: see `kraftlog.testing.plugin`."""
