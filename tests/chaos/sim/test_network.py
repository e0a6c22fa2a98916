"""Links that lose, delay, repeat, hold and cut."""

from random import Random

from chaos.sim.network import Network
from chaos.sim.options import Options
from chaos.sim.schedule import Schedule


class Wire:
    def __init__(self, **faults: float) -> None:
        self.schedule = Schedule(Random(1))
        self.network = Network(Random(2), Options(faults=faults), self.schedule)
        self.got: list[tuple[float, bytes]] = []

    def send(self, *data: bytes, link: tuple[int, int] = (1, 2)) -> None:
        for each in data:
            self.network.transfer(link, each, lambda raw: self.got.append((self.schedule.now, raw)))

    def run(self, end_ms: float = 10_000.0) -> list[bytes]:
        while self.schedule.is_due(end_ms):
            self.schedule.step()
        return sorted(raw for _, raw in self.got)


NUMBERS = [b"%02d" % number for number in range(40)]


def test_messages_arrive_each_after_a_time_of_its_own() -> None:
    wire = Wire()
    wire.send(*NUMBERS)
    assert wire.run() == NUMBERS
    assert [raw for _, raw in wire.got] != NUMBERS


def test_some_are_lost_some_come_twice_some_come_late() -> None:
    lossy, doubling, slow = Wire(loss=0.5), Wire(duplicate=0.5), Wire(delay=0.5)
    for wire in (lossy, doubling, slow):
        wire.send(*NUMBERS)
    assert 0 < len(lossy.run()) < len(NUMBERS)
    assert len(NUMBERS) < len(doubling.run()) < 2 * len(NUMBERS)
    assert slow.run() == NUMBERS
    assert max(at for at, _ in slow.got) > 50


def test_a_cut_loses_one_direction_and_what_was_on_its_way() -> None:
    wire = Wire()
    wire.send(b"before")
    block = wire.network.block([(1, 2)])
    wire.send(b"there")
    wire.send(b"back", link=(2, 1))
    assert wire.run() == [b"back"]
    wire.network.mend(block)
    wire.network.mend(block)
    wire.send(b"after")
    assert wire.run() == [b"after", b"back"]


def test_a_clog_delivers_later() -> None:
    wire = Wire()
    block = wire.network.block([(1, 2)], keeps=True)
    wire.send(*NUMBERS)
    assert wire.run(1_000.0) == []
    wire.network.mend(block)
    assert wire.run() == NUMBERS


def test_healing_ends_everything() -> None:
    wire = Wire(loss=1.0)
    wire.network.block([(1, 2)])
    wire.network.block([(1, 2)], keeps=True)
    wire.network.heal()
    wire.send(*NUMBERS)
    assert wire.run() == NUMBERS
