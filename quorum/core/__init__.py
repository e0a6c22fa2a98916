"""Raft by pulling, as a state machine without I/O: how a few voters keep one log.

What follows names the sections of Diego Ongaro's thesis and the proposals (KIPs) of Apache Kafka
that the rules come from, and the module that holds them.

**One log, one leader per epoch.** A replica is a node id *and* a directory id: a wiped disk is
another replica (KIP-853). Time is cut into epochs, the thesis calls them terms (3.3). An epoch has
at most one leader, and only the leader appends. Whoever hears of a higher epoch enters it at once.
Epoch, vote and leader are one durable write that comes before anything they are the reason for;
after a restart a replica is never Leader, and one that led the epoch it wakes up in is Resigned:
records it gave out and did not flush may live elsewhere, so it must not give out their offsets
again (`state`, `transitions`).

**Elections** (3.4, `election`). A voter whose leader is silent asks the others for pre-votes: would
you vote for me? (9.6, KIP-996). That costs nobody an epoch, and whoever still hears the leader says
no, so a voter that was cut off cannot disturb when it returns. With a majority it enters the next
epoch, votes for itself and asks for votes. Each voter gives one per epoch, to a log that goes at
least as far as its own (3.6.1), and gives the same one again to whoever asks twice. Since it does,
a candidate asks with what it has *flushed*: a crash must not leave it with less than it was elected
for. Of two that ask at once, the one with less log, or else with the greater key, steps back.

**Replication** (`leader`, `follower`). Nothing is pushed. Followers, and observers, which have no
vote, fetch from the end of their log and say in which epoch it ends (KIP-595). The leader answers
with records, or with where the two logs part, or with a snapshot if its log begins later (KIP-630);
a fetch that finds nothing new is kept for a while. A log that parts from the leader's is cut where
the epochs part, never below what is known to be committed. A fetch promises that all below its
offset is flushed; so the next fetch is the acknowledgement, and the leader's only heartbeat.
Because it cannot push, a new leader announces itself (BeginQuorumEpoch) until the others fetch.

**Commit** (3.6.2, `leader`). What a majority of voters has flushed is committed, once that includes
a record of the leader's own epoch; therefore each epoch begins with a LeaderChange record. We count
ourselves only up to our own flush, which runs while the followers already fetch. The end of what is
committed is the high watermark. It never goes down, and it reaches idle followers as soon as it
moves (KIP-1166). A leader from which no majority fetches for one and a half fetch timeouts resigns
(6.2); one that is told to stop resigns too, and names its successors, those with most of the log
first (3.10).

**Membership** (4, KIP-853, `membership`). The voters are a record of the log, and act as soon as it
is appended. One is added or removed at a time, so that old and new majorities overlap, and only
after the epoch has committed a record. Newcomers first catch up as observers. A leader that removes
itself leads on, uncounted, until that is committed. A candidate that is no voter of ours is judged
like any other, since our own set may be the stale one; only the *tally* is limited to voters.

**Reads** (6.4, `leader`). A linearizable read is answered once a record appended after its arrival
is committed; if nobody proposes one, a no-op does, one for all reads that wait.

**How it is driven** (`raft`, `effects`, `replica`). Inputs are calls: a request, a reply, the time,
a proposal, the end of a flush. Outputs are a list of effects, to be carried out in that order.
There is no clock, no dice, no socket, no disk and no task in here; `tests/quorum/core` and the
simulator put whole quorums of cores into one thread. `log_view` knows of the log what decisions
need: ends, epochs, voters, snapshots; it forgets what is behind the log's start. `tally` counts.

What this does not do:

- It does not survive liars. A replica that breaks the rules on purpose can break the log; what is
  merely wrong (another cluster, another disk, an epoch far ahead, nonsense) is refused.
- It has no leases. A read costs a commit; no clock is trusted with anything but liveness.
- It does not change several voters at once (joint consensus, 4.3), and adds none by itself: a voter
  that was removed stays out until an operator says otherwise.
- It does not force leadership upon a node. `resign` lets an heir campaign first, and voters decide.
- It does not get a quorum going again that has lost its majority for good.
- It does not help a disk that loses what was flushed. Such a replica must come back as another one.
- It does not follow a cluster that is more than 2^20 epochs ahead of it, nor outlive epoch 2^31-1.
- It does not limit how much may be appended before it is committed: whoever proposes does.
- It does not look into records, and checks no checksum: batches come in sound or not at all.
- It speaks no older or newer version of itself.
"""
