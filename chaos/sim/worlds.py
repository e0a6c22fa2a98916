"""Which world a seed is played in."""

from chaos.sim.metadata_world import MetadataWorld
from chaos.sim.options import Options
from chaos.sim.partitions_world import PartitionsWorld
from chaos.sim.world import World


def make_world(seed: int, options: Options, *, live_trace: bool = False) -> World:
    match options.kind:
        case "quorum":
            return World(seed, options, live_trace=live_trace)
        case "metadata":
            return MetadataWorld(seed, options, live_trace=live_trace)
        case "partitions":
            return PartitionsWorld(seed, options, live_trace=live_trace)
