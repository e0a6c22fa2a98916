"""Stories of one partition on three brokers: tests/brokers/transcripts/*.txt.

min N                        min.insync.replicas (before anything else)
produce B N                  broker B appends N records
fetch B                      broker B asks its leader; request and answer arrive
ask B                        the same, but only the request is made; it lies in the bag
deliver KIND | drop KIND     the oldest message of that kind: fetch, fetched, alter, altered
metadata B...                these brokers apply all metadata
fence B | unfence B | elect B | crash B | restart B [LOST]
later MS                     time passes, and every leader looks at its ISR
show                         what each broker knows
"""

from pathlib import Path

import pytest

from brokers.effects import (
    BelowMinIsr,
    Effect,
    MoveHighWatermark,
    Propose,
    StartFollowing,
    StartLeading,
    StopFollowing,
    StopLeading,
)
from brokers.isr import CommittedIsr
from brokers.partition_state import Following, Leading
from tests.brokers.world import REPLICAS, Alter, Altered, Fetch, Fetched, Replica, World
from tests.transcript import replay

STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
KINDS = {"fetch": Fetch, "fetched": Fetched, "alter": Alter, "altered": Altered}


class ToldWorld(World):
    """Says what happens."""

    def __post_init__(self) -> None:
        self.said: list[str] = []
        super().__post_init__()

    def carry_out(self, replica: Replica, effects: list[Effect]) -> None:
        self.said += [f"  b{replica.id} {_words(effect)}" for effect in effects]
        super().carry_out(replica, effects)


def _words(effect: Effect) -> str:
    match effect:
        case StartLeading(epoch, start):
            return f"leads epoch {epoch} from {start}"
        case StopLeading():
            return "no longer leads"
        case StartFollowing(leader, epoch):
            return f"follows b{leader} in epoch {epoch}"
        case StopFollowing():
            return "no longer follows"
        case MoveHighWatermark(offset):
            return f"high watermark {offset}"
        case Propose(change):
            return f"asks for ISR {_set(change.ids)} (partition epoch {change.partition_epoch})"
        case BelowMinIsr(isr, needed):
            return f"has {isr} in sync, {needed} are needed"


def _set(members: frozenset[int] | tuple[int, ...]) -> str:
    return "[" + " ".join(map(str, sorted(members))) + "]"


class Story:
    def __init__(self) -> None:
        self.world = ToldWorld()

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        self.world.said.clear()
        said: list[str] = getattr(self, verb)(*words) or []
        self.world.check_invariants()
        return self.world.said + said

    def min(self, count: str) -> None:
        self.world = ToldWorld(min_insync=int(count))

    def produce(self, broker: str, count: str) -> list[str]:
        taken = [self.world.produce(int(broker)) for _ in range(int(count))]
        return [] if all(taken) else [f"  b{broker} refuses"]

    def fetch(self, broker: str) -> list[str]:
        known = len(self.world.bag)
        self.world.fetch(int(broker))
        said: list[str] = []
        while len(self.world.bag) > known and isinstance(self.world.bag[-1], Fetch | Fetched):
            said += self._deliver(len(self.world.bag) - 1)
        return said

    def ask(self, broker: str) -> list[str]:
        self.world.fetch(int(broker))
        return [_message(self.world.bag[-1])]

    def deliver(self, kind: str) -> list[str]:
        return self._deliver(self._oldest(kind))

    def drop(self, kind: str) -> list[str]:
        return [f"{_message(self.world.bag.pop(self._oldest(kind)))}, lost"]

    def _oldest(self, kind: str) -> int:
        return next(at for at, each in enumerate(self.world.bag) if isinstance(each, KINDS[kind]))

    def _deliver(self, at: int) -> list[str]:
        message = self.world.bag.pop(at)
        self.world.said.append(_message(message))
        self.world.deliver(message)
        return []

    def metadata(self, *brokers: str) -> None:
        for broker in brokers:
            self.world.apply_all(int(broker))

    def fence(self, broker: str) -> list[str]:
        self.world.controller.fence(int(broker))
        return self._decided()

    def unfence(self, broker: str) -> list[str]:
        self.world.unfence(int(broker))
        return self._decided()

    def elect(self, broker: str) -> list[str]:
        self.world.elect(int(broker))
        return self._decided()

    def crash(self, broker: str) -> None:
        self.world.crash(int(broker))

    def restart(self, broker: str, lost: str = "0") -> list[str]:
        self.world.restart(int(broker), lost=int(lost))
        return self._decided()

    def _decided(self) -> list[str]:
        now = self.world.now_assigned
        leader = f"b{now.leader}" if now.leader > 0 else "nobody"
        epochs = f"epoch {now.leader_epoch}, partition epoch {now.partition_epoch}"
        elr = f" ELR {_set(now.elr)}" if now.elr else ""
        return [f"controller: {leader} leads, ISR {_set(now.isr)}{elr}, {epochs}"]

    def later(self, ms: str) -> None:
        self.world.now_ms += int(ms)
        for broker in REPLICAS:
            self.world.check(broker)

    def show(self) -> list[str]:
        return [_state(replica) for replica in self.world.replicas.values()]


def _message(message: object) -> str:
    match message:
        case Fetch(source, target, epoch, offset, last, _):
            return f"b{source} -> b{target} fetch {offset} after epoch {last}, epoch {epoch}"
        case Fetched(source, target, _, _, _, records, high_watermark, None):
            return f"b{source} -> b{target} {len(records)} records, high watermark {high_watermark}"
        case Fetched(source, target, diverging=end) if end is not None:
            return f"b{source} -> b{target} epoch {end.epoch} ends at {end.end_offset}"
        case Alter(source, _, change):
            return f"b{source} -> controller ISR {_set(change.ids)}"
        case Altered(target, _, result):
            answer = result.error or f"ISR {_set(result.isr)}"
            return f"controller -> b{target} {answer}"
        case _:
            raise AssertionError(message)


def _state(replica: Replica) -> str:
    state = replica.state
    records = "".join(f" {rec.value}e{rec.epoch}" for rec in replica.log.records) or " nothing"
    where = f"high watermark {state.high_watermark}:{records}"
    match state.role:
        case _ if not replica.alive:
            return f"b{replica.id} dead:{records}"
        case Leading(isr=isr):
            pending = "" if isinstance(isr, CommittedIsr) else f" or {_set(isr.change.ids)}"
            return f"b{replica.id} leads, ISR {_set(isr.members)}{pending}, {where}"
        case Following(leader=leader):
            return f"b{replica.id} follows b{leader}, {where}"
        case _:
            return f"b{replica.id} knows nothing"


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    replay(path, Story().run, rewrite=bool(request.config.getoption("--rewrite")))
