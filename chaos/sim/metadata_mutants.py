"""Mistakes of the controller, to be noticed in worlds with scripted brokers."""

from chaos.sim.options import Kind
from chaos.sim.patching import Mutant

_KIND: Kind = "metadata"
_SEEDS = 40

_LEAVE = "_leave_isrs(image, broker_id, cause, static, agenda)"
_DONE = "done = self.committed.requests.find(once.client_id, once.request_id)"

METADATA = (
    Mutant(
        "a fenced broker stays in its ISRs",
        "metadata_log.decide.fencing:fence",
        ((_LEAVE, "Decision((), None)"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "broker epoch not raised by a registration",
        "metadata_log.decide.brokers:_new_incarnation",
        (("epoch=next_offset", "epoch=before.epoch if before else next_offset"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "broker epoch unchecked",
        "metadata_log.decide.brokers:check_epoch",
        (("if broker.epoch != broker_epoch:", "if False:"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "answers to requests forgotten",
        "quorum.controller:Controller._judge",
        ((_DONE, "done = None"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "answers to requests not in snapshots",
        "metadata_log.snapshot:write_records",
        (("yield from image.requests", "pass"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "answered before it is committed",
        "quorum.controller:Controller._answer",
        (("if self._proposed:", "if False:"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "partition epoch unchecked in AlterPartition",
        "metadata_log.decide.partitions:_check_epochs",
        (("if wish.partition_epoch < state.partition_epoch:", "if False:"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "a fenced broker joins an ISR",
        "metadata_log.decide.partitions:_check_member",
        (("if not broker.is_active:", "if False:"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "an ISR member of an earlier registration",
        "metadata_log.decide.partitions:_check_member",
        (("if member.broker_epoch not in (None, broker.epoch):", "if False:"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "unfenced before it has caught up",
        "metadata_log.decide.heartbeats:_knows",
        (("return request.applied_offset > broker.fenced_at", "return True"),),
        _SEEDS,
        _KIND,
    ),
    Mutant(
        "reads show what is not committed yet",
        "quorum.controller_calls:Calls.read",
        (("image = self.controller.committed", "image = self.controller.pending"),),
        _SEEDS,
        _KIND,
    ),
)
