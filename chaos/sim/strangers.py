"""Requests that are not meant for us: they are refused before anything changes (Q14)."""

from dataclasses import replace
from random import Random

from chaos.sim.cluster import CLUSTER_ID, Cluster
from chaos.sim.node import SimNode
from kraftlog._check import invariant
from kraftlog.rpc import raft_pb2
from kraftlog.types import Uuid
from quorum.core.config import EPOCH_LEAD_MAX
from quorum.core.messages import Refusal, ReplicaKey, Reply, VoteRequest
from quorum.wire import decode_reply, encode_request

OTHER_CLUSTER = Uuid(bytes(15) + b"x")
OTHER_DISK = Uuid(b"\xff" * 16)
STRANGER_ID = 99


class Strangers:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def call(self, dice: Random) -> None:
        """Ask some node for its vote, with a log that no voter could refuse."""
        alive = [node for node in self._cluster.alive if not node.paused]
        if alive:
            node = dice.choice(alive)
            request, why = _forge(node, dice)
            node.act(lambda driver: driver.tick())  # or it might move because its time has come
            if node.is_up:
                self._ask(node, request, why)

    def _ask(self, node: SimNode, request: VoteRequest, why: Refusal) -> None:
        before = _state(node)
        answers: list[Reply] = []

        def on_reply(data: bytes) -> None:
            answers.append(decode_reply(raft_pb2.RaftReply.FromString(data)))

        life = node.life
        node.receive(encode_request(0, request).SerializeToString(), on_reply)
        if node.life != life:
            return  # killed meanwhile
        facts = {"node": node.name, "request": request, "answers": answers}
        refused = [answer.refusal for answer in answers] == [why]
        invariant(refused, "Q14 a stranger is not refused", **facts)
        invariant(_state(node) == before, "Q14 a stranger changed something", **facts)
        self._cluster.sightings.note("stranger refused")


def _state(node: SimNode) -> object:
    core = node.core
    return core and (core.election, id(core.role), core.log.end_offset, core.high_watermark)


def _forge(node: SimNode, dice: Random) -> tuple[VoteRequest, Refusal]:
    epoch = node.core.epoch + 1 if node.core else 1
    good = VoteRequest(
        cluster_id=CLUSTER_ID,
        sender=ReplicaKey(STRANGER_ID, OTHER_DISK),
        recipient=node.key,
        epoch=epoch,
        last_epoch=epoch - 1,
        end_offset=1 << 40,
        pre_vote=dice.random() < 0.5,
    )
    match dice.randrange(4):
        case 0:
            return replace(good, cluster_id=OTHER_CLUSTER), Refusal.WRONG_CLUSTER
        case 1:
            recipient = ReplicaKey(node.node_id, OTHER_DISK)
            return replace(good, recipient=recipient), Refusal.WRONG_RECIPIENT
        case 2:
            sender = ReplicaKey(node.node_id, OTHER_DISK)
            return replace(good, sender=sender), Refusal.SAME_NODE_ID
        case _:
            too_far = replace(good, epoch=epoch + EPOCH_LEAD_MAX)
            return too_far, Refusal.EPOCH_TOO_FAR_AHEAD
