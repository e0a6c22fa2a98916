"""What of a log a power cut could still take: segments with new bytes, and new names.

A flush takes it all and makes it durable. Should that fail half way, as on a full disk, nothing of
it may be forgotten: the next flush has to begin anew.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass, field

from storage.files import Files
from storage.segment import Segment


@dataclass(slots=True)
class Unsynced:
    segments: list[Segment] = field(default_factory=list)
    names: bool = False
    """Files came or went in the directory of the log."""
    directory: bool = False
    """The directory itself is new."""

    def add(self, segment: Segment) -> None:
        if not self.segments or self.segments[-1] is not segment:
            self.segments.append(segment)

    def keep_only(self, segments: Collection[Segment]) -> None:
        """The others are no longer part of the log."""
        self.segments = [segment for segment in self.segments if segment in segments]

    def with_later(self, later: "Unsynced") -> "Unsynced":
        """All of this one, and then of one that was begun after it."""
        return Unsynced(
            list(dict.fromkeys([*self.segments, *later.segments])),
            self.names or later.names,
            self.directory or later.directory,
        )

    def sync(self, files: Files, directory: str) -> None:
        """Make it durable: the bytes first, then the names that lead to them."""
        for segment in self.segments:
            segment.sync()
        if self.names:
            files.sync_dir(directory)
        if self.directory:
            files.sync_dir(os.path.dirname(directory) or ".")
