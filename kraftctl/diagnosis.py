"""Why nobody leads: who has a vote, who of those answers, whom they hear, what they refused lately.

Everything here is worked out from what the controllers say of themselves; nobody is asked anything.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kraftlog.admin_types import QuorumDescription, Refused, Voter
from kraftlog.cluster_health import Belief
from kraftlog.types import Uuid

ELECTIONS = 10
"""A refusal that is older than so many elections says nothing of what goes on now."""
ELECTION_MS = 1_000
"""Of a controller that does not say how long its elections take."""

Key = tuple[int, Uuid]


def key_of(voter: Voter) -> Key:
    """A controller that has lost its disk is another replica, and has no vote."""
    return voter.node_id, voter.directory_id


@dataclass(frozen=True, slots=True)
class Electorate:
    """The voters, as the newest of those who answer knows them."""

    voters: tuple[Voter, ...]
    answering: tuple[QuorumDescription, ...]
    """Those of them who answer."""
    voteless: tuple[QuorumDescription, ...]
    """Who answers besides: observers, newcomers, and another disk in the place of a voter's."""

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    @property
    def lost(self) -> tuple[Voter, ...]:
        """Voters in whose place another disk answers."""
        others = {each.node.node_id for each in self.voteless}
        return tuple(each for each in self._missing if each.node_id in others)

    @property
    def silent(self) -> tuple[Voter, ...]:
        lost = self.lost
        return tuple(each for each in self._missing if each not in lost)

    @property
    def _missing(self) -> Iterator[Voter]:
        there = {key_of(each.node) for each in self.answering}
        return (each for each in self.voters if key_of(each) not in there)

    @property
    def epoch(self) -> int:
        return max((each.epoch for each in self.answering), default=0)

    @property
    def leaderless_ms(self) -> int | None:
        """For how long nobody leads that any of them knew of; None: one knows a leader."""
        known = [each.leaderless_ms for each in self.answering]
        if None in known or not known:
            return None
        return min(each for each in known if each is not None)

    @property
    def led_epoch(self) -> int:
        """The last epoch of which any of them knew a leader."""
        return max((each.led_epoch for each in self.answering), default=0)


def electorate(found: Mapping[str, Belief]) -> Electorate:
    said = [each for each in found.values() if isinstance(each, QuorumDescription)]
    knowing = [each for each in said if each.voters]  # a newcomer has nobody's log yet
    newest = max(knowing, key=lambda each: (each.epoch, each.end_offset), default=None)
    voters = tuple(each.voter for each in newest.voters) if newest else ()
    keys = {key_of(each) for each in voters}
    return Electorate(
        voters,
        tuple(each for each in said if key_of(each.node) in keys),
        tuple(each for each in said if key_of(each.node) not in keys),
    )


def explain(found: Mapping[str, Belief]) -> tuple[str, str]:
    """Why nobody leads, most likely, and what to do about it."""
    known = electorate(found)
    if not known.voters:
        return _nobody_knows(found)
    if len(known.answering) < known.majority:
        return majority_text(known), _bring_back(known)
    return (
        _followed(known)
        or _refused(known)
        or _deaf(known)
        or ("an election goes on", _and_again("ask again soon", known))
    )


def majority_text(known: Electorate) -> str:
    there = len(known.answering)
    counted = f"{there} answers" if there == 1 else f"{there} answer"
    return f"a majority is {known.majority} of {len(known.voters)} voters, and {counted}"


def _nobody_knows(found: Mapping[str, Belief]) -> tuple[str, str]:
    silent = [address for address, each in found.items() if not isinstance(each, QuorumDescription)]
    places = ", ".join(silent)
    if silent:
        return f"no voter answers: nobody at {places}", f"start {places} again"
    return (
        "those who answer have joined no quorum yet, and know of no voter",
        "name a voter with -b; or have them join one: kraftctl quorum join HOST:PORT",
    )


def _bring_back(known: Electorate) -> str:
    """What gives the quorum its majority again."""
    steps = []
    if known.silent:
        steps.append(f"start {_places(known.silent)} again")
    if known.lost and len(known.lost) > len(known.voters) - known.majority:
        steps.append(f"bring back the directories of {_names(known.lost)}: no majority without")
    elif known.lost:
        through = known.answering[0] if known.answering else None
        seed = endpoint_of(known, through.node) if through else "HOST:PORT"
        steps += [f"once somebody leads: {replacement(each, seed)}" for each in known.lost]
    return "; ".join(steps)


def replacement(voter: Voter, seed: str) -> str:
    """The command with which a wiped voter gets its vote back."""
    place = f" --listen {voter.endpoint}" if voter.endpoint else ""
    return f"kraftctl quorum join {seed} --replace {voter.node_id}{place} --dir DIR"


def endpoint_of(known: Electorate, node: Voter) -> str:
    places = {key_of(each): each.endpoint for each in known.voters}
    return places.get(key_of(node)) or "HOST:PORT"


def _followed(known: Electorate) -> tuple[str, str] | None:
    """A leader that its voters hear, and we do not."""
    followers = [
        each for each in known.answering if each.role == "follower" and each.epoch == known.epoch
    ]
    leaders = {each.leader.node_id for each in followers if each.leader}
    if not leaders:
        return None
    names = ", ".join(str(each.node.node_id) for each in followers)
    cause = (
        f"{names} follow {min(leaders)} in epoch {known.epoch}, which does not answer here:"
        " it cannot be reached from here, or has just gone"
    )
    return cause, _and_again("ask again soon", known)


def _refused(known: Electorate) -> tuple[str, str] | None:
    """The newest refusal tells what the last election has failed of."""
    notes = [(each, note) for each in known.answering for note in lately(each) if note.ours]
    notes = [(each, note) for each, note in notes if note.refusal in (_BEHIND, _VOTED)]
    if not notes:
        return None
    newest = min(notes, key=lambda pair: pair[1].ago_ms)[1]
    same = [(each, note) for each, note in notes if note.refusal == newest.refusal]
    if newest.refusal == _VOTED:
        return _split(known, [pair for pair in same if pair[1].epoch == newest.epoch], newest.epoch)
    behind = sorted({note.node_id for _, note in same})
    longest = max((each for each, _ in same), key=lambda each: each.end_offset)
    names, first = ", ".join(map(str, behind)), longest.node.node_id
    cause = f"{names} asked for votes with a log that is behind: others hold more of it"
    wait = f"wait until {first} campaigns, whose log ends at {longest.end_offset}"
    return cause, _and_again(wait, known)


_BEHIND = "log behind"
_VOTED = "already voted"


def _split(
    known: Electorate, notes: Iterable[tuple[QuorumDescription, Refused]], epoch: int
) -> tuple[str, str]:
    """Who was refused has campaigned, and so has whoever got the vote instead."""
    elected = {each.voted.node_id for each in known.answering if each.voted and each.epoch == epoch}
    rivals = sorted({note.node_id for _, note in notes} | elected)
    cause = (
        f"a split vote: {', '.join(map(str, rivals))} campaign at the same time,"
        f" and none has {known.majority} votes"
    )
    return cause, _and_again("wait: each draws another pause before it tries again", known)


def _deaf(known: Electorate) -> tuple[str, str] | None:
    """Voters whom we reach, and who do not reach each other."""
    pairs = [
        (one, other)
        for one in known.answering
        for other in known.answering
        if one is not other and one.election_timeout_ms and not _hears(one, other)
    ]
    if not pairs:
        return None
    told = "; ".join(
        f"{one.node.node_id} does not hear {other.node.node_id}" for one, other in pairs
    )
    one, other = pairs[0]
    places = f"{endpoint_of(known, one.node)} and {endpoint_of(known, other.node)}"
    return told, _and_again(f"see to the network between {places}", known)


def _hears(one: QuorumDescription, other: QuorumDescription) -> bool:
    ago_ms = heard(one).get(key_of(other.node))
    return ago_ms is not None and ago_ms <= _window_ms(one)


def heard(one: QuorumDescription) -> dict[Key, int | None]:
    """How long ago it has last heard of each voter."""
    return {key_of(each.voter): each.heard_ago_ms for each in one.voters}


def lately(one: QuorumDescription) -> list[Refused]:
    """A controller keeps its last refusals however old they are."""
    return [each for each in one.refusals if each.ago_ms <= _window_ms(one)]


def _window_ms(one: QuorumDescription) -> int:
    return ELECTIONS * (one.election_timeout_ms or ELECTION_MS)


def _and_again(first: str, known: Electorate) -> str:
    return f"{first}; or {_bring_back(known)}" if known.silent or known.lost else first


def _names(voters: Iterable[Voter]) -> str:
    return ", ".join(str(each.node_id) for each in voters)


def _places(voters: Iterable[Voter]) -> str:
    return ", ".join(
        f"{each.node_id} ({each.endpoint})" if each.endpoint else str(each.node_id)
        for each in voters
    )
