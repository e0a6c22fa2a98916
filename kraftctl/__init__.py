"""The command line of kraftlog."""
