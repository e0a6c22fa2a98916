"""Seeds that once found something. They run with every `make test`.

A seed stands for a story only as long as the simulator draws the same dice. So every bug that was
found also has a scenario of its own in test_scenarios.py, which does not depend on dice.
"""

from collections.abc import Mapping

SEEDS: Mapping[int, str] = {
    10: "a leader that had removed itself, alone with that record, and nobody could be elected",
}
