from rpds import HashTrieMap

from metadata_log.maps import differ, with_changes


def test_empty_maps_do_not_differ_whatever_the_library_says() -> None:
    empty: HashTrieMap[str, int] = HashTrieMap()
    assert not differ(empty, empty)
    assert not differ(empty, HashTrieMap({"a": 1}).discard("a"))
    assert not differ(HashTrieMap({"a": 1}), HashTrieMap({"a": 1}))
    assert differ(HashTrieMap({"a": 1}), HashTrieMap({"a": 2}))
    assert differ(HashTrieMap({"a": 1}), empty)


def test_changes_set_and_remove() -> None:
    base = HashTrieMap({"a": 1, "b": 2})
    assert dict(with_changes(base, {"a": None, "c": 3, "x": None})) == {"b": 2, "c": 3}
    assert dict(base) == {"a": 1, "b": 2}
