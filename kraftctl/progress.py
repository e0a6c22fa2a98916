"""What a command waits for, told once a second where that takes longer than one."""

import time
from collections.abc import Callable

from kraftctl.output import Output

EVERY_SECONDS = 1.0


class Progress:
    """Is asked to tell as often as its owner looks."""

    def __init__(self, output: Output, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._due = clock() + EVERY_SECONDS

    @property
    def is_due(self) -> bool:
        """Whether it is worth finding out what to tell."""
        return self._clock() >= self._due

    def tell(self, text: str) -> None:
        if self.is_due:
            self._due = self._clock() + EVERY_SECONDS
            self._output.note(text)
