"""The steps of all drills."""

from importlib import import_module

_MODULES = (
    "calm",
    "controllers",
    "brokers",
    "mixed",
    "strangers",
    "disks",
    "failing_disks",
    "insides",
)


def load() -> None:
    """Every drill registers itself when its module is loaded."""
    for name in _MODULES:
        import_module(f"{__name__}.{name}")
