"""`kraftctl quorum transfer|step-down|history`: who leads, who shall, who has."""

import time

import click

from kraftctl.controllers import beliefs, leader_of, with_controllers
from kraftctl.exit_codes import OK, NotFound
from kraftctl.meta_commands import source_history, source_options, time_text
from kraftctl.node_names import NODE
from kraftctl.output import Json, table
from kraftctl.session import Session, cluster_options, command
from kraftlog.admin_types import QuorumDescription
from kraftlog.durations import to_seconds
from kraftlog.errors import KraftError, LeaderNotAvailable, RequestTimedOut, TimeoutError_

POLL_SECONDS = 0.05
HISTORY = ("LeaderChange", "Voters")


@click.command()
@click.argument("node", type=NODE)
@cluster_options
@command
def transfer(session: Session, node: int) -> int:
    """Have a voter lead. The leader resigns and lets that one campaign first."""
    before, after = _change(session, node)
    session.output.show(
        {"before": before, "leader": after.node.node_id, "epoch": after.epoch},
        f"{after.node.node_id} leads epoch {after.epoch}; undo: kraftctl quorum transfer {before}",
    )
    return OK


@click.command("step-down")
@cluster_options
@command
def step_down(session: Session) -> int:
    """Have anybody else lead: whoever has most of the log campaigns first."""
    before, after = _change(session, None)
    session.output.show(
        {"before": before, "leader": after.node.node_id, "epoch": after.epoch},
        f"{after.node.node_id} leads epoch {after.epoch}; before it was {before}",
    )
    return OK


def _change(session: Session, node: int | None) -> tuple[int, QuorumDescription]:
    """Ask until the wanted one leads: the voters may choose another, and a log may be behind."""
    deadline = time.monotonic() + to_seconds(session.timeout, "--timeout")
    first: int | None = None
    tried: KraftError | None = None
    while True:
        leader = _wait_leader(session, deadline)
        there = leader.node.node_id
        first = first if first is not None else there
        if there == node or (node is None and there != first):
            return first, leader
        if tried is not None and time.monotonic() > deadline:
            raise tried
        try:
            _ask(session, leader, node)
        except RequestTimedOut as error:  # the heir has not caught up, so the leader goes on
            tried = error
            time.sleep(POLL_SECONDS)
            continue
        tried = TimeoutError_(
            f"{there} has stepped down each time, and {_nobody_else(node)}",
            hint="kraftctl quorum why tells who refused whom",
        )
        _wait_other(session, leader, deadline)


def _nobody_else(node: int | None) -> str:
    return "was elected again" if node is None else f"others were elected, not {node}"


def _wait_leader(session: Session, deadline: float) -> QuorumDescription:
    while (leader := leader_of(beliefs(session).values())) is None:
        if time.monotonic() > deadline:
            raise LeaderNotAvailable("nobody leads", hint="kraftctl quorum why tells more")
        time.sleep(POLL_SECONDS)
    return leader


def _wait_other(session: Session, before: QuorumDescription, deadline: float) -> None:
    """Until the election is over."""
    while True:
        leader = leader_of(beliefs(session).values())
        if leader is not None and leader.epoch > before.epoch:
            return
        if time.monotonic() > deadline:
            raise TimeoutError_(
                f"{before.node.node_id} was asked to step down, and nobody else leads yet",
                hint="kraftctl quorum why tells more",
            )
        time.sleep(POLL_SECONDS)


def _ask(session: Session, leader: QuorumDescription, node: int | None) -> None:
    from quorum.client import QuorumClient  # noqa: PLC0415 - gRPC takes its time to load
    from quorum.core.messages import ReplicaKey  # noqa: PLC0415

    voters = {each.voter.node_id: each.voter for each in leader.voters}
    if node is not None and node not in voters:
        known = ", ".join(map(str, sorted(voters)))
        raise NotFound(f"{node} is no voter", hint=f"the voters are {known}")
    heir = ReplicaKey(node, voters[node].directory_id) if node is not None else None
    address = leader.leader.endpoint if leader.leader else ""
    cluster_id = leader.cluster_id
    if cluster_id is None:
        raise KraftError(f"{address} does not know its cluster")

    async def act(client: QuorumClient) -> None:
        await client.step_down(address, cluster_id, heir)

    with_controllers(session, act, [address])


@click.command()
@source_options
@command
def history(session: Session, directory: str | None) -> int:
    """Who has led each epoch and which voters there were, as far back as the log goes."""
    found = [each for each in source_history(session, directory).entries if each.kind in HISTORY]
    data: Json = [each.json() for each in found]
    rows = [
        (each.offset, time_text(each.timestamp), each.epoch, each.text, each.cause)
        for each in found
    ]
    session.output.show(data, table(("OFFSET", "TIME", "EPOCH", "WHAT", "WHY"), rows))
    return OK
