"""Mistakes that others have made, or that we could make: the simulator must notice each of them."""

from chaos.sim.metadata_mutants import METADATA
from chaos.sim.partitions_mutants import PARTITIONS
from chaos.sim.patching import Mutant

_READ = "quorum.core.raft:RaftCore.read"
_ANSWER_NOW = """from quorum.core.effects import ReadReady
        self._replica.emit(ReadReady((token,), self.high_watermark))"""
_LEASE = """if self.has_committed_epoch() and now_ms < role.check_quorum_deadline_ms:
            from quorum.core.effects import ReadReady
            self._replica.emit(ReadReady((token,), self.high_watermark))
        else:
            add_read(role, token)"""
_FETCH_AS_PROOF = """while leader.reads and leader.check_quorum_deadline_ms < deadline_ms:
        replica.emit(ReadReady(leader.reads.popleft()[1], replica.high_watermark))
    leader.check_quorum_deadline_ms = deadline_ms"""
_NOTHING = "(lambda *ignored: None)("

ELECTION = (
    Mutant(
        "vote not fsynced",
        "quorum.election_file:write_election",
        (('+ b"\\n")', '+ b"\\n", durable=False)'),),
    ),
    Mutant(
        "vote not remembered",
        "quorum.core.election:_give_vote",
        (("replica.save_election(replace(replica.election, voted_key=candidate))", "pass"),),
    ),
    Mutant(
        "votes twice",
        "quorum.core.election:_judge_binding_vote",
        (("None if voted == candidate else Refusal.ALREADY_VOTED", "None"),),
    ),
    Mutant(
        "votes for a log that is behind",
        "quorum.core.log_view:Position.is_behind",
        (("return mine < theirs", "return False"),),
    ),
    Mutant(
        "asks for votes with what is not flushed",
        "quorum.core.election:ask_for_votes",
        (("replica.log.flushed_position", "replica.log.position"),),
        seeds=200,
    ),
    Mutant(
        "directory id of the voter ignored",
        "quorum.core.replica:Replica.why_not",
        (
            (
                "request.recipient not in (None, self.key)",
                "request.recipient and request.recipient.node_id != self.key.node_id",
            ),
        ),
    ),
    Mutant(
        "campaigns without pre-votes",
        "quorum.core.transitions:become_prospective",
        (("    settle_election(replica)", "    _become_candidate(replica, retries=retries)"),),
    ),
    Mutant(
        "pre-vote although the leader is alive",
        "quorum.core.election:_judge_pre_vote",
        (("return Refusal.LEADER_ALIVE", "return None"),),
    ),
    Mutant(
        "leads its old epoch again after a restart",
        "quorum.core.transitions:begin",
        (
            (
                "replica.set_role(Resigned(replica.election_timeout()))",
                "_campaign(replica, retries=0)",
            ),
        ),
    ),
    Mutant(
        "leader does not resign",
        "quorum.core.leader:check_quorum",
        (
            (
                "    resign(replica, leader)\n",
                "    leader.check_quorum_deadline_ms += 1_000\n",
            ),
        ),
    ),
    Mutant(
        "leader resigns after twice the time",
        "quorum.core.leader:set_check_quorum",
        (("since_ms + replica", "since_ms + 2 * replica"),),
    ),
    Mutant(
        "a fetch of one renews that of another",
        "quorum.core.leader:set_check_quorum",
        (("newest[needed - 1]", "newest[0]"),),
    ),
)

REPLICATION = (
    Mutant(
        "follower acks before its fsync",
        "quorum.core.replica:Replica.is_durable",
        (("self.log.flushed_offset == self.log.end_offset or not self.must_flush", "True"),),
    ),
    Mutant(
        "leader counts itself before its fsync",
        "quorum.core.leader:_flushed_end",
        (("replica.log.flushed_offset", "replica.log.end_offset"),),
    ),
    Mutant(
        "commits an older epoch by count",
        "quorum.core.leader:advance_commit",
        (("end <= leader.start_offset or ", ""),),
    ),
    Mutant(
        "high watermark falls",
        "quorum.core.leader:advance_commit",
        ((" or end <= replica.high_watermark", ""),),
    ),
    Mutant(
        "observers count for a commit",
        "quorum.core.leader:advance_commit",
        (("for key in replica.voters.keys", "for key in (replica.key, *leader.replicas)"),),
    ),
    Mutant(
        "diverging fetch counts as progress",
        "quorum.core.leader:on_fetch_request",
        (
            (
                "_redirect(replica,",
                "_record_progress(replica, leader, request); _redirect(replica,",
            ),
        ),
    ),
    Mutant(
        "epoch of a fetch unchecked",
        "quorum.core.leader:judge_leader_request",
        (
            ("request.epoch < replica.epoch", "False"),
            ("request.epoch > replica.epoch", "False"),
        ),
    ),
    Mutant(
        "cuts to the high watermark",
        "quorum.core.follower:_cut_divergence",
        (
            (
                "min(ours.end_offset, theirs.end_offset) if is_shared else ours.end_offset",
                "replica.high_watermark",
            ),
        ),
    ),
    Mutant(
        "a cut leaves the voters",
        "quorum.core.log_view:LogView.truncate",
        (("if entry.offset < end_offset]", "]"),),
    ),
)

READS_AND_CLIENTS = (
    Mutant("read without a barrier", _READ, (("add_read(role, token)", _ANSWER_NOW),)),
    Mutant("read under a lease", _READ, (("add_read(role, token)", _LEASE),)),
    Mutant(
        "a fetch proves the leadership for reads",
        "quorum.core.leader:set_check_quorum",
        (("leader.check_quorum_deadline_ms = deadline_ms", _FETCH_AS_PROOF),),
    ),
    Mutant(
        "proposals outlive the leadership",
        "quorum.driver:Driver._fail_proposals",
        (("while self._pending:", "while False:"),),
    ),
    Mutant(
        "leadership announced too early",
        "quorum.state_machine:Applier._announce",
        ((" and self.applied_offset > self._leading[1]", ""),),
    ),
)

MEMBERSHIP = (
    Mutant(
        "changes of voters overlap",
        "quorum.core.membership:_judge_change",
        (
            ("if leader.change:", "if False:"),
            ("None if is_settled else Refusal.CHANGE_PENDING", "None"),
        ),
    ),
    Mutant(
        "changes voters before its epoch has committed",
        "quorum.core.membership:_judge_change",
        (("if not has_committed(replica, leader):", "if False:"),),
    ),
    Mutant(
        "a removed leader cannot be elected",
        "quorum.core.replica:Replica.may_campaign",
        ((" or self.key in self.log.committed_voters(self.high_watermark)", ""),),
    ),
)

DISK = (
    Mutant(
        "log flushed without fsync",
        "storage.log:Log._sync",
        (("unsynced.sync(", _NOTHING),),
    ),
    Mutant(
        "recovery point ahead of the flush",
        "storage.log:Log._sync",
        (("    unsynced.sync(", "    self._recovery_point.write(target)\n    unsynced.sync("),),
    ),
    Mutant(
        "a cut leaves the recovery point",
        "storage.log:Log._shorten",
        (("self._recovery_point.lower(", _NOTHING),),
    ),
    Mutant(
        "torn tail accepted",
        "storage.recovery:_Scan._check_next",
        (("batch.check_crc()", "pass"),),
    ),
    Mutant(
        "a damaged vote is believed",
        "quorum.election_file:_parse",
        (("if fields[_CRC] != found:", "if False:"),),
    ),
    Mutant(
        "a damaged snapshot is taken",
        "quorum.snapshot_file:_batches_of",
        (("batch.check_crc()", "pass"),),
    ),
    Mutant(
        "a downloaded snapshot is not synced",
        "quorum.store:Store.check_download",
        (("    download.file.sync()\n", ""),),
    ),
    Mutant(
        "the check of a download that was given up counts",
        "quorum.store:Store.end_check",
        (("if download is self._download:", "if True:"),),
    ),
    Mutant(
        "snapshot renamed before its fsync",
        "quorum.snapshot_file:publish",
        (("    part.sync()\n", ""),),
    ),
)

MUTANTS = (*ELECTION, *REPLICATION, *READS_AND_CLIENTS, *MEMBERSHIP, *DISK, *METADATA, *PARTITIONS)
