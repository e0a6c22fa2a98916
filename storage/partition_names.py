"""The names of partition directories, by Kafka's rules.

    orders-3                                               partition 3 of topic `orders`
    orders-3.9f86d081884c7d659a2feaa0c55ad015-delete       to be unlinked in the background
    orders-3.9f86d081884c7d659a2feaa0c55ad015-stray        nobody's, kept until a person looks at it

The last dash parts topic and partition, since topics may have dashes themselves. Everything else
in a log directory is not ours and is left alone.
"""

import re

from kraftlog.types import TopicPartition, Uuid

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
PARTITION_MAX = 2**31 - 1
NAME_CHARS_MAX = 255
"""What file systems allow. The topic's part of a longer name is cut."""

# No leading zero: each partition has one name, and so each name that is not it belongs to nobody.
_PARTITION = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_DELETE = re.compile(rf"\S+-[0-9]+\.[0-9a-f]{{32}}{DELETE_SUFFIX}")


def parse_partition_name(name: str) -> TopicPartition | None:
    """The partition whose directory has this name; None if it is not that of a partition."""
    match = _PARTITION.fullmatch(name)
    if match is None or match[1] in (".", "..") or int(match[2]) > PARTITION_MAX:
        return None
    return TopicPartition(match[1], int(match[2]))


def is_delete_name(name: str) -> bool:
    """Whether a directory of this name was renamed to be deleted."""
    return _DELETE.fullmatch(name) is not None


def delete_name(partition: TopicPartition) -> str:
    """A name, never used before, under which a directory waits to be unlinked."""
    return _unique_name(partition, DELETE_SUFFIX)


def stray_name(partition: TopicPartition) -> str:
    """A name, never used before, under which a directory is kept aside."""
    return _unique_name(partition, STRAY_SUFFIX)


def _unique_name(partition: TopicPartition, suffix: str) -> str:
    ending = f"-{partition.partition}.{Uuid.random().raw.hex()}{suffix}"
    return partition.topic[: NAME_CHARS_MAX - len(ending)] + ending
