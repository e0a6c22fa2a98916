"""Which world a seed is played in."""

from chaos.sim.metadata_world import MetadataWorld
from chaos.sim.options import KINDS, Options, kind_of
from chaos.sim.partitions_world import PartitionsWorld
from chaos.sim.worlds import make_world


def test_a_kind_has_its_world() -> None:
    worlds = [make_world(1, Options.swarm(1, kind)) for kind in KINDS]
    assert isinstance(worlds[1], MetadataWorld)
    assert isinstance(worlds[2], PartitionsWorld)


def test_every_kind_has_its_turn() -> None:
    kinds = [kind_of(seed) for seed in range(100)]
    assert {kind: kinds.count(kind) for kind in KINDS} == {
        "quorum": 50,
        "metadata": 25,
        "partitions": 25,
    }
