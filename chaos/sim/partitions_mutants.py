"""Mistakes of brokers, to be noticed in worlds with real brokers."""

from chaos.sim.options import Kind
from chaos.sim.patching import Mutant

_KIND: Kind = "partitions"
_SEEDS = 40
_MANY_SEEDS = 100
"""For what needs a rare state to do harm."""
_STATE = "brokers.partition_state:PartitionState"

PARTITIONS = (
    Mutant(
        "joins the ISR below the high watermark",
        f"{_STATE}._expand",
        (("and progress.end_offset >= reached", ""),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "replica cut to its high watermark",
        "brokers.replica_fetcher:truncation_point",
        (("own = log.end_for_epoch(leader.epoch)", "return log.high_watermark"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "producers forgotten by a new leader",
        "brokers.partition:Partition._start_leading",
        (
            (
                "self.log.epochs.assign(epoch, start_offset)",
                "self.log.epochs.assign(epoch, start_offset); self.log.producers.clear()",
            ),
        ),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "a fenced broker goes on serving",
        "brokers.lifecycle:Lifecycle.session_alive",
        (
            (
                "return since_ms is not None and now_ms - since_ms < self._timing.session_ms",
                "return True",
            ),
        ),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "min.insync.replicas ignored",
        f"{_STATE}.needed_isr",
        (("return min(self.min_insync, replicas)", "return min(1, replicas)"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "high watermark beyond the ISR",
        f"{_STATE}._advance",
        (("replica_id in role.isr.maximal or ", ""),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "high watermark without those who are to join",
        f"{_STATE}._advance",
        (("role.isr.maximal", "role.isr.members"),),
        _MANY_SEEDS,
        _KIND,
    ),
    Mutant(
        "a diverging fetch counts",
        "brokers.partition:Partition.follower_fetched",
        (
            (
                "if self.find_divergence(part.offset, part.last_fetched_epoch) is not None:",
                "if False:",
            ),
        ),
        _MANY_SEEDS,
        _KIND,
    ),
    Mutant(
        "leader epoch of a fetch unchecked",
        "brokers.partition:Partition.check_epoch",
        (("leader_epoch is None or leader_epoch == current", "True"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "consumers read to the end of the log",
        "brokers.fetch:_Fetch._look_as_consumer",
        (
            (
                "self._take(found, partition, partition.high_watermark, collected)",
                "self._take(found, partition, partition.end_offset, collected)",
            ),
        ),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "a fenced follower goes on serving",
        "brokers.partition:Partition.check_serving",
        (
            (
                "if not self.is_in_session(now_ms) and",
                "if self.is_leader and not self.is_in_session(now_ms) and",
            ),
        ),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "an end told before it is known to be one",
        "brokers.offsets:visible_end",
        (("if partition.high_watermark < role.epoch_start:", "if False:"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "acknowledged by the leader alone",
        "brokers.produce:_Produce._wait_for",
        (("partition.high_watermark < needed", "False"),),
        _SEEDS,
        _KIND,
    ),
)
