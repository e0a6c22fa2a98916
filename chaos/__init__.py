"""Faults on purpose: the simulator, drills of live clusters, and the checkers that judge both."""
