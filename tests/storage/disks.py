"""What the tests of the model disk share."""

from storage.files import File, Files


def write(files: Files, path: str, data: bytes, position: int = 0) -> File:
    file = files.open(path, create=True)
    file.pwrite([data], position)
    return file


def tree(files: Files, path: str) -> dict[str, bytes | None]:
    """Every path below, with the bytes of a file or None for a directory."""
    found: dict[str, bytes | None] = {}
    for name in files.list_dir(path):
        child = f"{path}/{name}"
        if files.is_dir(child):
            found[child] = None
            found |= tree(files, child)
        else:
            found[child] = files.read_bytes(child)
    return found
