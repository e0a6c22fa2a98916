"""Which damage the quorum can still survive: a majority of every voter set must stay sound.

A replica that is lost for good does not endanger safety: it is silent, like any crashed one. But
without a majority nothing moves any more, and no protocol can help. So faults and operators ask
here first.
"""

from collections.abc import Iterable

from chaos.sim.cluster import Cluster
from quorum.core.messages import ReplicaKey, Voter, VoterSet
from quorum.core.tally import majority


class Atlas:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def acting_sets(self) -> list[VoterSet]:
        """The newest committed voters, and all later ones in some log, whether it is up or not."""
        cores = [node.core for node in self._cluster.nodes if node.core]
        cores += self._cluster.former_cores
        settled = max(
            (
                entry.offset
                for core in cores
                for entry in core.log.voter_history
                if entry.offset < core.high_watermark
            ),
            default=-1,
        )
        return [
            entry.voters
            for core in cores
            for entry in core.log.voter_history
            if entry.offset >= settled
        ]

    def unsound(self) -> set[ReplicaKey]:
        """Voters that cannot be counted on: their disk is lost, or will be found damaged, or nobody
        knows where they are.
        """
        moved = {
            voter.key
            for voters in self.acting_sets()
            for voter in voters.voters
            if self._is_elsewhere(voter)
        }
        rotten = {node.key for node in self._cluster.nodes if node.is_rotten}
        return self._cluster.lost | moved | rotten

    def _is_elsewhere(self, voter: Voter) -> bool:
        return any(
            node.key == voter.key and node.endpoint != voter.endpoint
            for node in self._cluster.nodes
        )

    def may_lose(self, *keys: ReplicaKey) -> bool:
        """Whether these could be lost as well."""
        return self.has_majorities(self.unsound() | set(keys), self.acting_sets())

    def may_become(self, voters: VoterSet) -> bool:
        """Whether the quorum could go on with these voters."""
        return len(voters) > 0 and self.has_majorities(self.unsound(), [voters])

    @staticmethod
    def has_majorities(without: set[ReplicaKey], sets: Iterable[VoterSet]) -> bool:
        return all(
            sum(key not in without for key in voters.keys) >= majority(len(voters))
            for voters in sets
        )
