"""Stories of a log on a disk that loses power: tests/storage/transcripts/*.txt.

append VALUE...          one batch           append-epoch EPOCH VALUE...
flush | roll | close     truncate OFFSET     drop N     start OFFSET
power-cut SEED           the power goes, and what the seed says is left of unsynced work
open | open-clean        recover             flip FILE BYTE
read                     what a consumer finds
files                    names and sizes
"""

from pathlib import Path

import pytest

from kraftlog.errors import KraftError
from storage.log import Log
from storage.model_disk import ModelDisk
from tests.storage.logs import batch, opened, records_of, small_segments
from tests.transcript import replay

DIRECTORY = "/data/t-0"
STORIES = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


class Story:
    def __init__(self) -> None:
        self.disk = ModelDisk(seed=1)
        self.disk.make_dir("/data")
        self.disk.sync_dir("/")
        self.epoch = 0
        self.log: Log = opened(self.disk, DIRECTORY, small_segments())

    def run(self, command: str) -> list[str]:
        verb, *words = command.split()
        try:
            said: list[str] = getattr(self, verb.replace("-", "_"))(*words)
        except KraftError as error:
            return [f"{type(error).__name__}: {error}"]
        return said

    def _state(self) -> list[str]:
        log = self.log
        epochs = " ".join(f"e{e.epoch}@{e.start_offset}" for e in log.epochs.entries())
        segments = " ".join(f"[{s.base_offset},{s.next_offset})" for s in log.segments)
        marks = f"start={log.start_offset} flushed={log.flushed_offset} end={log.end_offset}"
        return [f"{marks} segments {segments or '-'} epochs {epochs or '-'}"]

    def append(self, *values: str) -> list[str]:
        data = batch(*(value.encode() for value in values))
        at = self.log.append(data, leader_epoch=self.epoch)
        return [f"{at.base_offset}..{at.last_offset}"]

    def append_epoch(self, epoch: str, *values: str) -> list[str]:
        self.epoch = int(epoch)
        return self.append(*values)

    def flush(self) -> list[str]:
        self.log.flush()
        return self._state()

    def roll(self) -> list[str]:
        self.log.roll()
        return self._state()

    def close(self) -> list[str]:
        self.log.close()
        return ["closed"]

    def truncate(self, offset: str) -> list[str]:
        self.log.truncate_to(int(offset))
        return self._state()

    def drop(self, count: str) -> list[str]:
        self.log.drop_oldest(int(count))
        return self._state()

    def start(self, offset: str) -> list[str]:
        self.log.advance_start(int(offset))
        return self._state()

    def power_cut(self, seed: str) -> list[str]:
        self.disk.restart(int(seed))
        return self.files()

    def flip(self, name: str, byte: str) -> list[str]:
        self.disk.flip_bit(f"{DIRECTORY}/{name}", int(byte), 0)
        return [f"one bit of {name} is wrong"]

    def open(self) -> list[str]:
        self.log = opened(self.disk, DIRECTORY, small_segments())
        return self._state()

    def open_clean(self) -> list[str]:
        self.log = opened(self.disk, DIRECTORY, small_segments(), clean=True)
        return self._state()

    def read(self) -> list[str]:
        return [f"{r.offset} {(r.value or b'').decode()}" for r in records_of(self.log)]

    def files(self) -> list[str]:
        if not self.disk.is_dir(DIRECTORY):
            return ["no directory"]
        return [f"{n} {size}" for n, size in self.disk.list_sizes(DIRECTORY).items()]


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, request: pytest.FixtureRequest) -> None:
    replay(path, Story().run, rewrite=bool(request.config.getoption("--rewrite")))
