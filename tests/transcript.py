"""Golden transcripts: text files that a reviewer reads like a story.

A transcript is a list of blocks with an empty line between them. A block has comments (`# why`),
commands, a line `---`, and what came of the commands. `pytest --rewrite` writes the last part anew.
"""

from collections.abc import Callable
from pathlib import Path

RULE = "---"


def replay(path: Path, run: Callable[[str], list[str]], *, rewrite: bool) -> None:
    """Run every command of a transcript in order and compare what it says with what is written."""
    written = path.read_text()
    blocks = [_replay_block(block, run) for block in written.strip("\n").split("\n\n")]
    found = "\n\n".join(blocks) + "\n"
    if rewrite:
        path.write_text(found)
    else:
        assert found == written, f"{path.name} tells another story; see --rewrite"


def _replay_block(block: str, run: Callable[[str], list[str]]) -> str:
    head = block.split(f"\n{RULE}", 1)[0].splitlines()
    commands = [line for line in head if not line.startswith("#")]
    said = [line for command in commands for line in run(command)]
    return "\n".join([*head, RULE, *said] if commands else head)
