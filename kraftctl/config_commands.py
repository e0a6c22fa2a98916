"""`kraftctl config ...`"""

import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import click

from kraftctl.exit_codes import OK
from kraftctl.node_names import node_number
from kraftctl.output import Json, table
from kraftctl.session import Session, cluster_options, command, output_option
from kraftctl.topic_commands import pairs
from kraftlog.admin_types import ConfigResource
from kraftlog.errors import ConfigError

RESOURCE = "topic:NAME|broker:ID|brokers"


def resource_of(text: str) -> ConfigResource:
    kind, _, name = text.partition(":")
    if text == "brokers":
        return ConfigResource.broker()
    if kind == "topic" and name:
        return ConfigResource.topic(name)
    number = node_number(name) if kind == "broker" else None
    if number is not None:
        return ConfigResource.broker(number)
    raise ConfigError(f"{text!r} has no configs", hint=f"it is {RESOURCE}")


@click.command()
@click.argument("resource", metavar=RESOURCE)
@click.argument("keys", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Defaults too.")
@cluster_options
@command
def get(session: Session, resource: str, keys: tuple[str, ...], *, everything: bool) -> int:
    """Values that hold, and where they come from."""
    wanted = resource_of(resource)
    with session.admin() as admin:
        found = admin.describe_configs(wanted).raise_for_errors()[wanted]
    _check_known(keys, found, resource)
    rows = [
        (each.name, each.value, each.source)
        for each in sorted(found.values(), key=lambda each: each.name)
        if each.name in keys or (not keys and (everything or each.source != "default"))
    ]
    data: Json = [{"name": name, "value": value, "source": source} for name, value, source in rows]
    session.output.show(data, table(("KEY", "VALUE", "SOURCE"), rows))
    return OK


def _check_known(keys: Iterable[str], known: Mapping[str, object], resource: str) -> None:
    for key in keys:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            them = f"kraftctl config get {resource} --all shows them"
            hint = f"did you mean {close[0]}?" if close else them
            raise ConfigError(f"{key} is not a config of {resource}", hint=hint)


@click.command("set")
@click.argument("resource", metavar=RESOURCE)
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
@cluster_options
@command
def set_(session: Session, resource: str, values: tuple[str, ...]) -> int:
    """Set configs of a topic or of brokers."""
    return _alter(session, resource, dict(pairs(values, "")))


@click.command()
@click.argument("resource", metavar=RESOURCE)
@click.argument("keys", nargs=-1, required=True)
@cluster_options
@command
def unset(session: Session, resource: str, keys: tuple[str, ...]) -> int:
    """Go back to the default."""
    return _alter(session, resource, dict.fromkeys(keys))


def _alter(session: Session, text: str, changes: dict[str, str | None]) -> int:
    resource = resource_of(text)
    with session.admin() as admin:
        before = admin.describe_configs(resource).raise_for_errors()[resource]
        _check_known([key for key, value in changes.items() if value is None], before, text)
        admin.alter_configs({resource: changes}).raise_for_errors()
    level = "topic" if resource.kind == "topic" else "broker" if resource.name else "cluster"
    own = {
        key: each.value for key, each in before.items() if key in changes and each.source == level
    }
    session.output.show(
        {"resource": text, "changed": changes},
        f"{resource}: {len(changes)} changed; undo: {_undo(text, changes, own)}",
    )
    return OK


def _undo(text: str, changes: Mapping[str, str | None], own: Mapping[str, str | None]) -> str:
    """The commands that bring back what was; `own` is what the resource did not inherit."""
    gone = [key for key in changes if key not in own]
    sets = " ".join(shlex.quote(f"{key}={value}") for key, value in own.items())
    return "; ".join(
        [f"kraftctl config set {text} {sets}"] * bool(own)
        + [f"kraftctl config unset {text} {' '.join(gone)}"] * bool(gone)
    )


@click.command()
@click.argument("key")
@output_option
@command
def explain(session: Session, key: str) -> int:
    """What a key means, what it may be, and where it can be set."""
    from kraftlog.config import explain as explain_key  # noqa: PLC0415 - loads all keys

    text = explain_key(key)
    session.output.show({"key": key, "text": text}, text)
    return OK
