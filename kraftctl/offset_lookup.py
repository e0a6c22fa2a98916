"""Which offsets the places of the one grammar (`kraftlog.offsets`) are, for commands."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kraftlog.errors import ConfigError
from kraftlog.offsets import Anchor, Offset, OffsetRange
from kraftlog.types import TopicPartition

if TYPE_CHECKING:
    from kraftlog.admin import Admin

Offsets = dict[TopicPartition, int]


def locate(admin: "Admin", places: Mapping[TopicPartition, Offset]) -> Offsets:
    """The offset of each, as `seek` takes it: a time behind the last record is the end."""
    if not places:
        return {}
    found = admin.list_offsets(places).raise_for_errors()
    offsets = {place: listed.offset for place, listed in found.ok.items()}
    late = [place for place, offset in offsets.items() if offset < 0]
    return offsets | locate(admin, dict.fromkeys(late, Offset.END))


def ends_of(
    admin: "Admin", ranges: Mapping[TopicPartition, OffsetRange], *, exit_at_end: bool
) -> Offsets:
    """Up to which offset each partition is read, of those that are not read for ever."""
    named = {place: each.end for place, each in ranges.items() if each.end is not None}
    ends = locate(admin, named)
    if exit_at_end:
        now = locate(admin, dict.fromkeys(ranges, Offset.END))
        ends = {place: min(end, ends.get(place, end)) for place, end in now.items()}
    return ends


def check_starts(admin: "Admin", ranges: Mapping[TopicPartition, OffsetRange]) -> list[str]:
    """Refuses a number that no record can have yet; returns what to say of those that are gone."""
    starts = {place: each.first for place, each in ranges.items() if is_number(each.first)}
    ends = locate(admin, dict.fromkeys(starts, Offset.END))
    for place, start in starts.items():
        if start.number > ends[place]:
            raise ConfigError(
                f"{place} ends at {ends[place]}: there is no offset {start}",
                hint="begin at end to read what comes next",
            )
    begins = locate(admin, dict.fromkeys(starts, Offset.START))
    return [
        f"{place} begins at {begins[place]}: what was before is deleted"
        for place, start in starts.items()
        if start.number < begins[place]
    ]


def is_number(place: Offset) -> bool:
    return place.anchor is Anchor.ABSOLUTE
