import pytest

from kraftlog.consumer_options import ConsumerOptions, consumer_options
from kraftlog.errors import ConfigError, NotYetSupported
from kraftlog.fetch_session import FetchLimits
from kraftlog.offsets import Offset


def options(**arguments: object) -> ConsumerOptions:
    return consumer_options("b:1", arguments)


# R37
def test_all_of_them() -> None:
    made = options(
        fetch_min_bytes=10,
        fetch_max_wait="50ms",
        fetch_max_bytes=2000,
        max_partition_fetch_bytes=1000,
        max_poll_records=7,
        client_rack="r1",
        check_crcs=False,
        offset_reset="earliest",
    )
    assert made.limits == FetchLimits(50, 10, 2000, 1000, "r1")
    assert (made.max_poll_records, made.check_crcs) == (7, False)
    assert made.reset == Offset.START


def test_where_to_begin() -> None:
    assert options().reset == Offset.END
    assert options(offset_reset="error").reset is None
    assert options(offset_reset="1h").reset == Offset.ago("1h")
    assert options(offset_reset=90).reset == Offset.ago("90s")
    assert options(config={"auto.offset.reset": "earliest"}).reset == Offset.START
    assert options(config={"auto.offset.reset": "none"}).reset is None  # Kafka's name for it
    with pytest.raises(ConfigError, match="offset_reset = 'begin'"):
        options(offset_reset="begin")


def test_groups_come_later() -> None:
    assert options(group_id=None, auto_commit=False, isolation="read_uncommitted").reset
    for later in ({"group_id": "g"}, {"auto_commit": "5s"}, {"isolation": "read_committed"}):
        with pytest.raises(NotYetSupported):
            options(**later)
