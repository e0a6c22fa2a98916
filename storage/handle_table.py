"""Which open handles belong to which path."""

from typing import Generic, Protocol, TypeVar


class _Named(Protocol):
    path: str


_N = TypeVar("_N", bound=_Named)


class HandleTable(Generic[_N]):
    """Open handles by path, so that a rename carries them along and a removal can close them."""

    def __init__(self) -> None:
        self._by_path: dict[str, list[_N]] = {}

    def add(self, handle: _N) -> None:
        self._by_path.setdefault(handle.path, []).append(handle)

    def discard(self, handle: _N) -> None:
        handles = self._by_path.get(handle.path, [])
        if handle in handles:
            handles.remove(handle)
            if not handles:
                del self._by_path[handle.path]

    def take(self, path: str) -> list[_N]:
        """Forget the handles of a path and return them."""
        return self._by_path.pop(path, [])

    def take_all(self) -> list[_N]:
        """Forget every handle and return them."""
        taken = [handle for handles in self._by_path.values() for handle in handles]
        self._by_path.clear()
        return taken

    def move(self, src: str, dst: str) -> None:
        """Follow the rename of a file."""
        for handle in self.take(src):
            handle.path = dst
            self.add(handle)

    def move_dir(self, src: str, dst: str) -> None:
        """Follow the rename of a directory."""
        prefix = src + "/"
        for path in [path for path in self._by_path if path.startswith(prefix)]:
            self.move(path, dst + path[len(src) :])
