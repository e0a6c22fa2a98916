"""What becomes of a request about many things: an answer or an error for each of them."""

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from kraftlog.errors import KraftError

K = TypeVar("K")
V = TypeVar("V")


class Results(Mapping[K, V], Generic[K, V]):
    """A mapping in the order of the request. Looking up what has failed raises its error."""

    def __init__(self, outcomes: Mapping[K, V | KraftError]) -> None:
        self._outcomes = dict(outcomes)

    @property
    def ok(self) -> dict[K, V]:
        """What worked."""
        return {
            key: outcome
            for key, outcome in self._outcomes.items()
            if not isinstance(outcome, KraftError)
        }

    @property
    def errors(self) -> dict[K, KraftError]:
        """What did not, and why."""
        return {
            key: outcome
            for key, outcome in self._outcomes.items()
            if isinstance(outcome, KraftError)
        }

    def raise_for_errors(self) -> "Results[K, V]":
        """Raise the first error, with the others as notes; without one return the results."""
        errors = list(self.errors.items())
        if errors:
            _, first = errors[0]
            for key, error in errors[1:]:
                first.add_note(f"also {key}: {error.code_name}: {error.message}")
            raise first
        return self

    def __getitem__(self, key: K) -> V:
        outcome = self._outcomes[key]
        if isinstance(outcome, KraftError):
            raise outcome
        return outcome

    def __contains__(self, key: object) -> bool:
        return key in self._outcomes

    def __iter__(self) -> Iterator[K]:
        return iter(self._outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __repr__(self) -> str:
        return f"Results({self._outcomes!r})"
