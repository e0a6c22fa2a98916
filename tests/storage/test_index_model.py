"""Both indexes against a list, over any history of appends, cuts, flushes and reopenings."""

import errno

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage.index import OffsetIndex, TimeIndex
from storage.model_disk import ModelDisk
from tests.storage.test_index import BASE, PATH, SmallBlockOffsets, SmallBlockTimes


class IndexMachine(RuleBasedStateMachine):
    """Any mixture of changes and restarts; `model` is what the index must hold."""

    disk: ModelDisk
    index: OffsetIndex | TimeIndex
    model: list[tuple[int, int]]

    def make(self) -> OffsetIndex | TimeIndex:
        raise NotImplementedError

    def offset_of(self, entry: tuple[int, int]) -> int:
        raise NotImplementedError

    @initialize()
    def start(self) -> None:
        self.disk = ModelDisk()
        self.index = self.make()
        self.index.reset()
        self.model = []

    @rule(steps=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=9))
    def append(self, steps: list[tuple[int, int]]) -> None:
        for step in steps:
            last = self.model[-1] if self.model else (BASE, BASE)
            entry = (last[0] + step[0], last[1] + step[1])
            self.index.append(*entry)
            self.model.append(entry)

    @rule(back=st.integers(-2, 40))
    def truncate(self, back: int) -> None:
        offset = (self.offset_of(self.model[-1]) if self.model else BASE) - back
        self.index.truncate_to(offset)
        self.model = [entry for entry in self.model if self.offset_of(entry) < offset]

    @rule()
    def flush(self) -> None:
        self.index.flush()
        assert self.disk.size(self.index.path) == self.index.size_bytes

    @rule()
    def flush_on_a_bad_disk(self) -> None:
        self.disk.fail_next("pwrite", errno.ENOSPC)
        if self.index._current is not None and self.index._current.tail:
            with pytest.raises(OSError, match="No space"):
                self.index.flush()
        self.disk._faults.clear()

    @rule()
    def reopen(self) -> None:
        self.index.flush()
        self.index.close()
        self.index = self.make()

    @rule()
    def lose_the_tail(self) -> None:
        self.index.flush()
        kept = list(self.model)
        self.append([(1, 1)])
        self.index.close()
        self.model = kept

    @rule(number=st.integers(0, 3))
    def rename(self, number: int) -> None:
        path = f"{self.index.path.partition('.')[0]}.{number}"
        self.index.rename(path)
        assert self.disk.list_dir(".") == [path]

    @rule()
    def reset(self) -> None:
        self.index.reset()
        self.model = []

    @invariant()
    def is_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        assert list(self.index.entries()) == self.model
        assert self.index.entry_count == len(self.model)
        assert self.index.last() == (self.model[-1] if self.model else None)
        self.index.check_deep()

    @rule(wanted=st.integers(BASE - 1, BASE + 300))
    def look_up(self, wanted: int) -> None:
        found = [entry for entry in self.model if entry[0] <= wanted]
        expected = found[-1] if found else self.nothing()
        assert self.index.lookup(wanted) == expected

    def nothing(self) -> tuple[int, int]:
        raise NotImplementedError


class OffsetIndexMachine(IndexMachine):
    def make(self) -> OffsetIndex:
        path = self.index.path if hasattr(self, "index") else PATH
        return SmallBlockOffsets(self.disk, path, BASE)

    def offset_of(self, entry: tuple[int, int]) -> int:
        return entry[0]

    def nothing(self) -> tuple[int, int]:
        return BASE, 0

    @rule(wanted=st.integers(BASE - 1, BASE + 300))
    def floor_position(self, wanted: int) -> None:
        assert isinstance(self.index, OffsetIndex)
        found = [position for _, position in self.model if position <= wanted]
        assert self.index.floor_position(wanted) == (found[-1] if found else 0)


class TimeIndexMachine(IndexMachine):
    def make(self) -> TimeIndex:
        path = self.index.path if hasattr(self, "index") else PATH
        return SmallBlockTimes(self.disk, path, BASE)

    def offset_of(self, entry: tuple[int, int]) -> int:
        return entry[1]

    def nothing(self) -> tuple[int, int]:
        return -1, BASE


TestOffsetIndexMachine = OffsetIndexMachine.TestCase
TestTimeIndexMachine = TimeIndexMachine.TestCase
