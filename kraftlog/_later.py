"""What is planned and not there yet: refused by name, never ignored."""

from typing import NoReturn, Protocol

from kraftlog.errors import NotYetSupported


class Refusal(Protocol):
    def __call__(self, *arguments: object, **named: object) -> NoReturn: ...


def not_yet(name: str, feature: str, hint: str = "it comes later") -> Refusal:
    """A method that says so, whatever it is called with."""

    def refuse(*_arguments: object, **_named: object) -> NoReturn:
        raise NotYetSupported(f"{name} needs {feature}", hint=hint)

    refuse.__name__ = name
    refuse.__doc__ = f"Not there yet: needs {feature}."
    return refuse


from_profile = not_yet("from_profile", "profiles", "give bootstrap_servers and the other options")
"""Of every client: the addresses and options that a user has stored under a name."""
