import pytest

from kraftctl.produce_command import _record
from tests.kraftctl.conftest import Run


def test_lines_become_records() -> None:
    assert _record("v", None, None, as_json=False) == (None, b"v", [])
    assert _record("v", "k", None, as_json=False) == (b"k", b"v", [])
    assert _record("a:b:c", None, ":", as_json=False) == (b"a", b"b:c", [])
    assert _record('{"key": "a", "value": "b"}', "k", None, as_json=True) == (b"a", b"b", [])
    assert _record('{"value": "b"}', "k", None, as_json=True) == (b"k", b"b", [])


@pytest.mark.slow
def test_records_are_sent(kraftctl: Run, topic: str) -> None:
    # R41
    sent = kraftctl("produce", topic, "-H", "a=1", "-o", "json", stdin="x\ny\n")
    assert sent.data == {"acknowledged": 2, "failed": 0}
    for acks in ("0", "1"):
        assert kraftctl("produce", topic, "--acks", acks, "--value", "z").code == 0
    assert kraftctl("produce", topic, "--compress", "zstd", "--value", "z").code == 0
    assert kraftctl("produce", topic, "--json", stdin="nonsense\n").code == 2
    assert kraftctl("produce", topic, "-H", "a", "--value", "z").code == 2
