"""What a power cut may leave, against all that the rules allow, worked out the slow way."""

import random
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.model_inode import (
    SECTOR_BYTES,
    CrashRules,
    DirNode,
    FileNode,
    Link,
    Move,
    Truncate,
    Unlink,
    Write,
)

Operation = Write | Truncate
Change = Link | Unlink | Move

PLAIN = CrashRules(reorder=False, extend=False)
EXTEND = CrashRules(reorder=False, extend=True)
REORDER = CrashRules(reorder=True, extend=False)
UNKIND = CrashRules(reorder=True, extend=True)
SEEDS = range(300)

positions = st.integers(0, 40) | st.integers(500, 530) | st.sampled_from([512, 1024, 1100])
writes = st.builds(Write, positions, st.binary(min_size=1, max_size=20) | st.just(b"w" * 1100))
truncates = st.builds(Truncate, positions)
operations = st.lists(writes | truncates, max_size=5)
synced_bytes = st.binary(max_size=40) | st.integers(0, 1200).map(lambda size: b"d" * size)


def node_with(synced: bytes, unsynced: Sequence[Operation]) -> FileNode:
    node = FileNode()
    node.do(Write(0, synced))
    node.sync()
    for operation in unsynced:
        node.do(operation)
    return node


def crashed(synced: bytes, unsynced: Sequence[Operation], rules: CrashRules, seed: int) -> bytes:
    node = node_with(synced, unsynced)
    node.crash(random.Random(seed), rules)
    assert node.content == node.durable
    return bytes(node.content)


def remains(synced: bytes, unsynced: Sequence[Operation], rules: CrashRules) -> set[bytes]:
    """Everything that some seed leaves."""
    return {crashed(synced, unsynced, rules, seed) for seed in SEEDS}


def after(image: bytes, operation: Operation) -> bytes:
    """The operation done by hand, not by the code under test."""
    if isinstance(operation, Truncate):
        return image[: operation.length].ljust(operation.length, b"\0")
    start, data = operation.position, operation.data
    return image.ljust(start, b"\0")[:start] + data + image[start + len(data) :]


def prefixes(synced: bytes, unsynced: Sequence[Operation]) -> Iterator[bytes]:
    yield synced
    for operation in unsynced:
        synced = after(synced, operation)
        yield synced


def torn(image: bytes, operation: Operation) -> Iterator[bytes]:
    if isinstance(operation, Truncate):
        return
    for size in range(1, len(operation.data)):
        cut = operation.position + size
        if cut >= len(image) or cut % SECTOR_BYTES == 0:
            yield after(image, Write(operation.position, operation.data[:size]))


def allowed(synced: bytes, unsynced: Sequence[Operation]) -> set[bytes]:
    """A prefix of the operations, or one and a part of the next."""
    whole = list(prefixes(synced, unsynced))
    pairs = zip(whole[:-1], unsynced, strict=True)
    parts = [part for image, operation in pairs for part in torn(image, operation)]
    return {*whole, *parts}


# -- a file while the power is on


@given(synced=synced_bytes, unsynced=operations)
def test_readers_see_every_operation_and_a_sync_makes_all_durable(
    synced: bytes, unsynced: list[Operation]
) -> None:
    *_, last = prefixes(synced, unsynced)
    node = node_with(synced, unsynced)
    assert (bytes(node.content), bytes(node.durable)) == (last, synced)
    node.sync()
    assert (bytes(node.content), bytes(node.durable)) == (last, last)
    assert not node.pending


def test_writing_nothing_does_not_extend_a_file() -> None:
    assert node_with(b"ab", [Write(9, b"")]).content == b"ab"
    assert node_with(b"ab", [Write(4, b"x")]).content == b"ab\0\0x"


# -- a file after a power cut


@given(synced=synced_bytes, unsynced=operations, seed=st.integers())
def test_unsynced_operations_survive_as_a_prefix_and_part_of_one(
    synced: bytes, unsynced: list[Operation], seed: int
) -> None:
    assert crashed(synced, unsynced, PLAIN, seed) in allowed(synced, unsynced)


@pytest.mark.parametrize(
    ("synced", "unsynced"),
    [
        (b"", [Write(0, b"abc"), Write(3, b"de")]),
        (b"abc", [Truncate(1), Write(1, b"xy")]),
        (b"d" * 1100, [Write(500, b"w" * 600)]),
        (b"d" * 600, [Write(590, b"w" * 12), Truncate(5)]),
    ],
)
def test_every_allowed_outcome_comes_up(synced: bytes, unsynced: list[Operation]) -> None:
    wanted = allowed(synced, unsynced)
    assert remains(synced, unsynced, PLAIN) == wanted
    assert remains(synced, unsynced, UNKIND) >= wanted


@given(synced=synced_bytes, seed=st.integers())
def test_what_was_synced_stays_whole(synced: bytes, seed: int) -> None:
    assert crashed(synced, [], UNKIND, seed) == synced


@given(synced=synced_bytes, unsynced=st.lists(writes, max_size=5), seed=st.integers())
def test_synced_bytes_that_nothing_overwrote_never_change(
    synced: bytes, unsynced: list[Write], seed: int
) -> None:
    left = crashed(synced, unsynced, UNKIND, seed)
    assert len(left) >= len(synced)
    overwritten = {at for write in unsynced for at in range(write.position, write.end)}
    assert all(left[at] == synced[at] for at in range(len(synced)) if at not in overwritten)


@given(synced=synced_bytes, unsynced=operations, seed=st.integers())
def test_a_file_may_get_its_length_without_its_bytes(
    synced: bytes, unsynced: list[Operation], seed: int
) -> None:
    left = crashed(synced, unsynced, EXTEND, seed)
    longest = max(map(len, prefixes(synced, unsynced)))
    assert len(left) <= longest
    zeros_added = (image.ljust(len(left), b"\0") for image in allowed(synced, unsynced))
    assert left in zeros_added


def test_zeros_reach_up_to_the_end_of_the_lost_write_and_no_further() -> None:
    left = remains(b"ab", [Write(2, b"cd")], EXTEND)
    assert left == {b"ab", b"abc", b"abcd", b"ab\0", b"ab\0\0", b"abc\0"}


def test_zeros_never_bring_back_a_length_from_the_other_side_of_a_truncation() -> None:
    assert remains(b"abcd", [Truncate(1)], EXTEND) == {b"abcd", b"a"}
    left = remains(b"ab", [Truncate(1), Write(1, b"wxyz")], EXTEND)
    assert {image for image in left if image[:2] == b"ab"} == {b"ab"}
    left = remains(b"ab", [Write(2, b"cd"), Truncate(1), Write(1, b"x")], EXTEND)
    assert {image for image in left if image[:2] != b"ab"} == {b"a", b"ax", b"a\0"}
    assert max(map(len, left)) == 4


def sector_outcomes(synced: bytes, unsynced: Sequence[Write], start: int) -> set[bytes]:
    """One sector after any choice of the writes, in their order."""
    outcomes = {synced[start : start + SECTOR_BYTES]}
    for write in unsynced:
        first = max(write.position, start)
        last = min(write.end, start + SECTOR_BYTES)
        if first < last:
            piece = Write(first - start, write.data[first - write.position : last - write.position])
            outcomes |= {after(image, piece) for image in outcomes}
    return outcomes


@given(unsynced=st.lists(writes, max_size=4), seed=st.integers())
def test_a_sector_is_overwritten_whole_or_not_at_all(unsynced: list[Write], seed: int) -> None:
    synced = b"d" * 5 * SECTOR_BYTES
    left = crashed(synced, unsynced, UNKIND, seed)
    for start in range(0, len(synced), SECTOR_BYTES):
        sector = left[start : start + SECTOR_BYTES]
        assert sector in sector_outcomes(synced, unsynced, start)


def test_sectors_reach_the_disk_in_any_order_only_where_that_is_asked_for() -> None:
    synced, write = b"d" * 3 * SECTOR_BYTES, Write(0, b"w" * 3 * SECTOR_BYTES)

    def patterns(rules: CrashRules) -> set[bytes]:
        return {image[::SECTOR_BYTES] for image in remains(synced, [write], rules)}

    assert patterns(PLAIN) == {b"ddd", b"wdd", b"wwd", b"www"}
    assert patterns(REORDER) == {bytes([a, b, c]) for a in b"dw" for b in b"dw" for c in b"dw"}


def test_a_truncation_keeps_its_place_among_reordered_writes() -> None:
    left = remains(b"", [Write(0, b"old"), Truncate(0), Write(0, b"n")], UNKIND)
    assert b"n" in left
    assert not any(image.startswith(b"n") and len(image) > 1 for image in left)


@given(synced=synced_bytes, unsynced=operations, seed=st.integers())
def test_the_same_seed_leaves_the_same(synced: bytes, unsynced: list[Operation], seed: int) -> None:
    assert crashed(synced, unsynced, UNKIND, seed) == crashed(synced, unsynced, UNKIND, seed)


@given(position=positions, data=st.binary(min_size=1, max_size=20) | st.just(b"w" * 1100))
def test_the_sectors_of_a_write_are_the_write(position: int, data: bytes) -> None:
    pieces = Write(position, data).sectors()
    assert b"".join(piece.data for piece in pieces) == data
    ends = [piece.end for piece in pieces]
    assert [piece.position for piece in pieces] == [position, *ends[:-1]]
    assert all(piece.position // 512 == (piece.end - 1) // 512 for piece in pieces)


def test_a_flipped_bit_stays_flipped_whatever_the_power_does() -> None:
    node = node_with(b"\x00\x00", [Write(1, b"\x10\x10"), Truncate(3)])
    node.flip_bit(1, 0)
    assert node.content == b"\x00\x11\x10"
    node.flip_bit(2, 7)
    assert node.content == b"\x00\x11\x90"
    node.sync()
    assert node.durable == b"\x00\x11\x90"
    lost = node_with(b"\x00\x00", [Write(1, b"\x10\x10")])
    lost.flip_bit(1, 0)
    assert lost.durable == b"\x00\x01"


# -- a directory


def names_of(node: DirNode) -> dict[str, bytes]:
    return {
        name: bytes(child.content)
        for name, child in sorted(node.names.items())
        if isinstance(child, FileNode)
    }


def file_of(content: bytes) -> FileNode:
    return node_with(content, [])


def directory(synced: Sequence[Change], unsynced: Sequence[Change]) -> DirNode:
    node = DirNode()
    for change in synced:
        node.do(change)
    node.sync()
    for change in unsynced:
        node.do(change)
    return node


def fates(synced: Sequence[Change], unsynced: Sequence[Change]) -> list[dict[str, bytes]]:
    """Every set of names that some seed leaves, in no order."""
    found = []
    for seed in SEEDS:
        node = directory(synced, unsynced)
        node.crash(random.Random(seed), PLAIN)
        assert node.names == node.durable
        found.append(names_of(node))
    return [fate for number, fate in enumerate(found) if fate not in found[:number]]


def by_size(fate: dict[str, bytes]) -> list[tuple[str, bytes]]:
    return list(fate.items())


def test_names_survive_as_a_prefix_of_their_changes() -> None:
    first, second = file_of(b"1"), file_of(b"2")
    left = fates([Link("a", first)], [Link("b", second), Move("b", "c"), Unlink("a")])
    wanted: list[dict[str, bytes]] = [
        {"a": b"1"},
        {"a": b"1", "b": b"2"},
        {"a": b"1", "c": b"2"},
        {"c": b"2"},
    ]
    assert sorted(left, key=by_size) == sorted(wanted, key=by_size)


def test_a_rename_over_a_file_leaves_the_old_one_or_the_new_one() -> None:
    old, new = Link("f", file_of(b"old")), Link("f.tmp", file_of(b"new"))
    left = fates([old, new], [Move("f.tmp", "f")])
    wanted: list[dict[str, bytes]] = [{"f": b"old", "f.tmp": b"new"}, {"f": b"new"}]
    assert sorted(left, key=by_size) == sorted(wanted, key=by_size)


def test_synced_names_stay() -> None:
    changes: list[Change] = [
        Link("a", file_of(b"1")),
        Move("a", "b"),
        Link("c", file_of(b"2")),
        Unlink("c"),
    ]
    assert fates(changes, []) == [{"b": b"1"}]


def test_a_synced_file_is_lost_with_the_directory_that_was_not() -> None:
    """The names inside were synced, but nothing made the way to them durable."""
    survivals = set()
    for seed in SEEDS:
        inner = directory([Link("f", file_of(b"1"))], [])
        root = directory([], [Link("d", inner)])
        root.crash(random.Random(seed), UNKIND)
        survivals.add("d" in root.names)
        if "d" in root.names:
            assert names_of(inner) == {"f": b"1"}
    assert survivals == {True, False}


def test_sync_all_reaches_everything_below() -> None:
    deep = node_with(b"", [Write(0, b"abc")])
    root = directory([], [Link("d", directory([], [Link("f", deep)]))])
    assert root.total_bytes() == 3
    root.sync_all()
    root.crash(random.Random(1), UNKIND)
    inner = root.names["d"]
    assert isinstance(inner, DirNode)
    assert names_of(inner) == {"f": b"abc"}
