"""People who run the cluster: they change the voters, and replace those whose disk is lost.

They sit beside the leader: a change that came late could take the quorum's last majority, which is
a mistake of operators that no protocol forgives.
"""

from random import Random

from chaos.sim.atlas import Atlas
from chaos.sim.cluster import CLUSTER_ID, Cluster
from chaos.sim.node import SimNode
from kraftlog.rpc import raft_pb2
from quorum.core.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    ReplicaKey,
    Voter,
    VoterSet,
)
from quorum.wire import decode_reply, encode_request

REPAIR_MS = 500.0
POLL_MS = 5.0
UNHEARD_MS = 50.0


class Operators:
    def __init__(self, cluster: Cluster, atlas: Atlas) -> None:
        self._cluster = cluster
        self._atlas = atlas
        self._dice = cluster.dice("operators")
        self._requests = 0
        self._patient = self._over = False

    def begin(self) -> None:
        self._cluster.schedule.later(REPAIR_MS, self._repair)

    def calm_down(self) -> None:
        """The faults have ended: no more changes for no reason. With some nodes gone for good, one
        of them could take the last majority.
        """
        self._patient = True

    def end(self) -> None:
        self._over = True

    def _repair(self) -> None:
        """Look for voters whose disk is lost; remove them, and add who came in their place."""
        if self._over:
            return
        self._cluster.schedule.later(REPAIR_MS, self._repair)
        leader = self._cluster.leader
        if leader is None or leader.core is None or leader.paused:
            return
        voters = leader.core.voters
        lost = [key for key in voters.keys if key in self._cluster.lost]
        if lost:
            self._remove(leader, voters, lost[0])
        elif len(voters) < self._cluster.options.voters:
            newcomers = self._newcomers(voters)
            if newcomers:
                self._add(leader, voters, self._dice.choice(newcomers))

    def change_voters(self, dice: Random) -> None:
        """For no reason at all: one more or one less, the leader itself included. Impatient ones
        ask for the next change before the last one is committed.
        """
        if dice.random() < 0.2 and self._remove_unheard(dice):
            return
        for _ in range(dice.choice((1, 1, 2))):
            self._change(dice)
        if dice.random() < 0.5:
            self._await_election(dice, after=self._epoch())

    def _await_election(self, dice: Random, *, after: int) -> None:
        """And some ask a leader that has hardly begun."""
        if self._patient:
            return
        if self._epoch() > after:
            self._change(dice)
        else:
            self._cluster.schedule.later(POLL_MS, lambda: self._await_election(dice, after=after))

    def _remove_unheard(self, dice: Random) -> bool:
        """Of an even number of voters the leader is removed and dies before anybody has heard of
        it: half of the voters are then behind the one that is going.
        """
        leader = self._cluster.leader
        if leader is None or leader.core is None or leader.paused:
            return False
        voters = leader.core.voters
        may_be = len(voters) % 2 == 0 and self._atlas.may_become(voters.without(leader.key))
        if not may_be or not self._cluster.may_crash(leader):
            return False
        ids = [node.node_id for node in self._cluster.nodes]
        unheard = self._cluster.network.block([(leader.node_id, each) for each in ids])
        self._cluster.schedule.later(UNHEARD_MS, lambda: self._cluster.network.mend(unheard))
        self._remove(leader, voters, leader.key)
        leader.in_this_life(dice.uniform(0, UNHEARD_MS), leader.die)
        return True

    def _epoch(self) -> int:
        leader = self._cluster.leader
        return leader.core.epoch if leader and leader.core else -1

    def _change(self, dice: Random) -> None:
        leader = self._cluster.leader
        if leader is None or leader.core is None or leader.paused:
            return
        voters = leader.core.voters
        newcomers = self._newcomers(voters)
        if newcomers and dice.random() < 0.5:
            self._add(leader, voters, dice.choice(newcomers))
        elif len(voters) > 1:
            key = leader.key if dice.random() < 0.3 else dice.choice(voters.keys)
            self._remove(leader, voters, key)

    def _newcomers(self, voters: VoterSet) -> list[SimNode]:
        return [
            node
            for node in self._cluster.alive
            if not node.is_broker and voters.find(node.node_id) is None
        ]

    def _add(self, leader: SimNode, voters: VoterSet, node: SimNode) -> None:
        voter = Voter(node.key, node.endpoint)
        if not self._atlas.may_become(voters.with_voter(voter)):
            return
        self._cluster.trace.add(f"operator adds {node.name}")
        was_wiped = any(key.node_id == node.node_id for key in self._cluster.lost)
        states = ["voter added", *(["wiped voter replaced"] if was_wiped else [])]
        self._ask(leader, AddVoterRequest(cluster_id=CLUSTER_ID, voter=voter), states)

    def _remove(self, leader: SimNode, voters: VoterSet, key: ReplicaKey) -> None:
        if not self._atlas.may_become(voters.without(key)):
            return
        self._cluster.trace.add(f"operator removes n{key.node_id}")
        is_itself = key == leader.key
        states = ["voter removed", *(["leader removed itself"] if is_itself else [])]
        self._ask(leader, RemoveVoterRequest(cluster_id=CLUSTER_ID, key=key), states)

    def _ask(
        self, leader: SimNode, request: AddVoterRequest | RemoveVoterRequest, states: list[str]
    ) -> None:
        self._requests += 1
        raw = encode_request(self._requests, request).SerializeToString()

        def on_reply(data: bytes) -> None:
            if decode_reply(raft_pb2.RaftReply.FromString(data)).refusal is None:
                for state in states:
                    self._cluster.sightings.note(state)

        leader.receive(raw, on_reply)
