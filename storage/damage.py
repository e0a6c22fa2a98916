"""Derived files: all that can be made again from the log itself.

An index, the leader epochs, a producer snapshot: each may be lost or wrong without any loss of
data. So damage to one is not an error for people but a message to the log above, which drops the
file and makes it anew.
"""

import errno

from storage.files import Files


class StateDamaged(Exception):
    """A derived file that has to be rebuilt. Internal: no caller of a log sees it."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path} {why}")
        self.path = path
        self.why = why


def read_derived(files: Files, path: str) -> bytes:
    """The bytes of a small derived file; StateDamaged if it is missing or absurdly large."""
    try:
        return files.read_bytes(path)
    except FileNotFoundError:
        raise StateDamaged(path, "is missing") from None
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise StateDamaged(path, f"is too large: {error.strerror}") from None
