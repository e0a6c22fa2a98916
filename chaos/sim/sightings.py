"""Rare states that a run of many seeds must have reached, else it has not tested much."""

from collections import Counter

from kraftlog._check import invariant

RARE_STATES = (
    "leader elected",
    "two candidates at once",
    "candidate lost its election",
    "leader resigned because nobody fetched",
    "restarted in an epoch that it had led",
    "restarted as a candidate",
    "vote refused: log behind",
    "vote refused: already voted",
    "pre-vote refused: leader alive",
    "asked a voter whose disk was replaced",
    "log cut where it diverged",
    "voters taken back by a cut",
    "flush ended after a cut",
    "committed records of an earlier leader",
    "proposal with unknown outcome was committed",
    "proposal with unknown outcome is gone",
    "proposal refused",
    "linearizable read",
    "read refused: leadership lost",
    "snapshot written",
    "snapshot could not be written",
    "log start moved",
    "snapshot of a leader loaded",
    "download of a snapshot given up",
    "damaged snapshot of a leader refused",
    "voter added",
    "voter removed",
    "leader removed itself",
    "voter moved to another address",
    "wiped voter replaced",
    "process killed between two effects",
    "process killed inside a disk operation",
    "power cut inside a disk operation",
    "power cut for all",
    "process ended by a disk error",
    "damage found at start",
    "broker lost its tail",
    "leader woke up deposed",
    "stranger refused",
    "message held back by a clog",
    "administrator's request done",
    "repeated request answered",
    "broker registered",
    "broker registered again",
    "broker came back with an empty disk",
    "broker unfenced",
    "broker fenced: SESSION_TIMEOUT",
    "broker fenced: METADATA_LAG",
    "broker fenced: SHUTDOWN",
    "broker fenced: OPERATOR",
    "broker stopped in good order",
    "heartbeat of an old registration refused",
    "ISR shrunk",
    "ISR grown",
    "ISR refused: FENCED_LEADER_EPOCH",
    "ISR refused: INVALID_UPDATE_VERSION",
    "ISR refused: INELIGIBLE_REPLICA",
    "partition leader elected",
    "partition without a leader",
    "eligible leader replica",
    "unclean election",
    "reassignment finished",
    "replica began to lead",
    "replica joined the ISR",
    "replica cut where it diverged",
    "record acknowledged by all",
    "records consumed",
    "records consumed from a follower",
    "end told",
)


COMMON_STATES = (
    "broker fenced: NEVER_UNFENCED",
    "broker fenced: REQUESTED",
    "ISR refused: INVALID_REQUEST",
    "ISR refused: UNKNOWN_TOPIC_ID",
    "ISR refused: UNKNOWN_TOPIC_OR_PARTITION",
    "ISR refused: NOT_CONTROLLER",
    "ISR refused: OPERATION_NOT_ATTEMPTED",
)
"""Counted as well, but a run need not have reached them."""

_KNOWN = frozenset((*RARE_STATES, *COMMON_STATES))


class Sightings(Counter[str]):
    """How often each was reached."""

    def note(self, state: str) -> None:
        invariant(state in _KNOWN, "a rare state that nobody declared", state=state)
        self[state] += 1
