"""The tree of commands. A command's module is loaded when the command is used, so that `--help`
and completion cost nothing but click.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import NoReturn

import click

from kraftctl import exit_codes
from kraftctl.usage_errors import UnknownCommand, tell

# In click 8.1 it was help and an exit code of 0.
_NO_ARGUMENTS = getattr(click.exceptions, "NoArgsIsHelpError", ())


class LazyGroup(click.Group):
    """Knows its commands by name, place and one line each."""

    def __init__(self, name: str, lazy: Mapping[str, tuple[str, str]], text: str) -> None:
        super().__init__(name, help=text, no_args_is_help=True)
        self._lazy = lazy
        """Name -> (module:attribute, help)."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._lazy:
            return None
        module, attribute = self._lazy[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def paths(self, above: str = "") -> Iterator[str]:
        """All commands, by the words behind the program's name; loads none of their modules."""
        for name, (place, _) in self._lazy.items():
            group = getattr(sys.modules[__name__], place.partition(":")[2], None)
            if isinstance(group, LazyGroup) and place.startswith(f"{__name__}:"):
                yield from group.paths(f"{above}{name} ")
            else:
                yield f"{above}{name}"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._lazy and not args[0].startswith("-"):
            raise UnknownCommand(ctx, args[0], main.paths())
        return super().resolve_command(ctx, args)

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])


class Root(LazyGroup):
    """The group of all; it ends the process, and nothing in it prints a usage error but `tell`."""

    def main(  # type: ignore[override] # it never returns
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **_: object
    ) -> NoReturn:
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(given, prog_name, standalone_mode=False)
        except _NO_ARGUMENTS as error:
            error.show()
            code = error.exit_code
        except click.UsageError as error:
            code = tell(error, self, given)
        except click.Abort:
            code = exit_codes.INTERRUPTED
        sys.exit(code)


_TOPIC = "kraftctl.topic_commands"
_PARTITION = "kraftctl.partition_commands"

topic = LazyGroup(
    "topic",
    {
        "ls": (f"{_TOPIC}:ls", "All topics."),
        "create": (f"{_TOPIC}:create", "Create topics."),
        "describe": (f"{_TOPIC}:describe", "Partitions, replicas and configs of topics."),
        "alter": (f"{_TOPIC}:alter", "Set or unset configs of a topic."),
        "delete": (f"{_TOPIC}:delete", "Delete topics and all their records."),
        "offsets": (f"{_TOPIC}:offsets", "Where partitions begin and end, or are at a time."),
        "trim": (f"{_TOPIC}:trim", "Delete the oldest records."),
        "add-partitions": (f"{_TOPIC}:add_partitions", "Give a topic more partitions."),
    },
    "Topics.",
)

partition = LazyGroup(
    "partition",
    {
        "describe": (f"{_PARTITION}:describe", "One partition, and what each replica has."),
        "elect": (f"{_PARTITION}:elect", "Make the preferred replica leader."),
        "verify": ("kraftctl.verify_command:verify", "Do all replicas have the same records?"),
        "reassign": (f"{_PARTITION}:reassign", "Move partitions to other brokers."),
    },
    "Partitions.",
)

config = LazyGroup(
    "config",
    {
        "get": ("kraftctl.config_commands:get", "Values that hold, and where they come from."),
        "set": ("kraftctl.config_commands:set_", "Set configs of a topic or of brokers."),
        "unset": ("kraftctl.config_commands:unset", "Go back to the default."),
        "explain": ("kraftctl.config_commands:explain", "What a key means."),
    },
    "Configuration.",
)

quorum = LazyGroup(
    "quorum",
    {
        "form": ("kraftctl.server_commands:form", "Found a cluster: its first voter, and run."),
        "join": ("kraftctl.server_commands:join", "Become a member of a cluster, and run."),
        "status": ("kraftctl.quorum_commands:status", "Who leads, and what each one believes."),
        "replication": ("kraftctl.quorum_commands:replication", "How far each replica is."),
        "why": ("kraftctl.quorum_why:why", "Why there is no leader, or who refuses whom."),
        "add": ("kraftctl.quorum_commands:add", "Make an observer a voter."),
        "remove": ("kraftctl.quorum_commands:remove", "Take a voter out."),
        "transfer": ("kraftctl.quorum_lead:transfer", "Have another voter lead."),
        "step-down": ("kraftctl.quorum_lead:step_down", "Have anybody else lead."),
        "history": ("kraftctl.quorum_lead:history", "Who has led, and which voters there were."),
    },
    "The controllers.",
)

node = LazyGroup(
    "node",
    {
        "ls": ("kraftctl.node_commands:ls", "All brokers, and why one is fenced."),
        "info": ("kraftctl.node_commands:info", "One node: a broker or a controller."),
        "run": ("kraftctl.server_commands:run", "Run a controller, a broker, or both."),
        "format": ("kraftctl.server_commands:format_", "Make an empty directory a node's."),
        "drain": ("kraftctl.node_commands:drain", "Move all replicas off a broker."),
        "fence": ("kraftctl.node_commands:fence", "Take a broker out of service."),
        "unfence": ("kraftctl.node_commands:unfence", "Let it back in."),
        "decommission": ("kraftctl.node_commands:decommission", "Forget a broker for good."),
    },
    "Brokers and controllers, one by one.",
)

log = LazyGroup(
    "log",
    {
        "dump": ("kraftctl.log_commands:dump", "Batches, records, indexes of files."),
        "verify": ("kraftctl.log_commands:verify", "Are the files whole?"),
    },
    "Files of a log, without a server.",
)

_DRILL = "kraftctl.drill_commands"

drill = LazyGroup(
    "drill",
    {
        "ls": (f"{_DRILL}:ls", "All drills."),
        "run": (f"{_DRILL}:run", "Break a real cluster and get a verdict."),
        "replay": (f"{_DRILL}:replay", "Run one again as it was run."),
        "verify": (f"{_DRILL}:verify", "Judge a history once more."),
        "clean": (f"{_DRILL}:clean", "End what a killed run has left."),
    },
    "Failure drills with a verdict.",
)

spark = LazyGroup(
    "spark",
    {
        "env": ("kraftctl.spark_commands:env", "What Spark's JVM and workers have to find."),
    },
    "Spark on this machine.",
)

_META = "kraftctl.meta_commands"

meta = LazyGroup(
    "meta",
    {
        "ls": (f"{_META}:ls", "The names below a path."),
        "cat": (f"{_META}:cat", "What stands at a path."),
        "tree": (f"{_META}:tree", "All names below a path, indented."),
        "log": (f"{_META}:log_", "Every record, and why it was written."),
        "blame": (f"{_META}:blame", "Which records made a path what it is."),
    },
    "Metadata, as a tree and as the log that made it; of a cluster or of files (--dir).",
)

_LOCAL = "kraftctl.local_commands"

main = Root(
    "kraftctl",
    {
        "up": ("kraftctl.up_command:up", "Start a local cluster of real processes."),
        "down": (f"{_LOCAL}:down", "Stop it; its data stays."),
        "ps": (f"{_LOCAL}:ps", "Its processes."),
        "restart": (f"{_LOCAL}:restart", "Restart nodes of it."),
        "logs": (f"{_LOCAL}:logs", "What its nodes say."),
        "purge": (f"{_LOCAL}:purge", "Remove it with all its data."),
        "demo": ("kraftctl.demo_command:demo", "A cluster that fails over before your eyes."),
        "status": ("kraftctl.look_commands:status", "The cluster on one screen."),
        "health": ("kraftctl.look_commands:health", "Is it fine? If not, why, and what now?"),
        "events": (f"{_META}:events", "What has happened, from the metadata log."),
        "topic": ("kraftctl.cli:topic", "Topics."),
        "partition": ("kraftctl.cli:partition", "Partitions."),
        "config": ("kraftctl.cli:config", "Configuration."),
        "produce": ("kraftctl.produce_command:produce", "Send records."),
        "consume": ("kraftctl.consume_command:consume", "Read records."),
        "quorum": ("kraftctl.cli:quorum", "The controllers."),
        "node": ("kraftctl.cli:node", "Brokers and controllers, one by one."),
        "meta": ("kraftctl.cli:meta", "Metadata: tree, log, blame; live and offline."),
        "version": ("kraftctl.version_command:version", "Which kraftlog this is."),
        "schema": ("kraftctl.schema_command:schema", "What the JSON of a command looks like."),
        "log": ("kraftctl.cli:log", "Files of a log, without a server."),
        "spark": ("kraftctl.cli:spark", "Spark on this machine."),
        "drill": ("kraftctl.cli:drill", "Failure drills with a verdict."),
    },
    "Forms a quorum and runs a cluster of kraftlog.\n\n\b\n"
    + (exit_codes.__doc__ or "").partition("\n\n")[2],
)


def _say_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    found = main.get_command(ctx, "version")
    if asked and found is not None:
        ctx.invoke(found)


main.params.append(
    click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_say_version,
        help="Which kraftlog this is.",
    )
)
