"""Seeds that once found something. They run with every `make test`.

A seed stands for a story only as long as the simulator draws the same dice. So every bug that was
found also has a scenario of its own in test_scenarios.py, which does not depend on dice.
"""

from collections.abc import Mapping

SEEDS: Mapping[int, str] = {
    10: "a leader that had removed itself, alone with that record, and nobody could be elected",
    115: "the same, after it had restarted: it took the voters of offset 0 for the committed ones",
    541: "a leader that woke up took a fetch that had waited for a sign of a majority",
    1317: "a majority in which nobody could win, by Raft's own rules (of the simulator)",
    3101: "who followed a leader of before cut what a later one had committed (of the simulator)",
    385: "one that had been removed and was not sure of it asked only a leader that was gone",
}

METADATA_SEEDS: Mapping[int, str] = {
    322: "a read whose record the disk refused was answered (of the simulator, not of ours)",
    606: "a candidate woke up elected, when another had led after it (of the simulator)",
    3358: "a controller with a new disk threw the dice of the one before (of the simulator)",
    106: "a controller that went on after its disk refused an append, ahead of its own log",
}

PARTITION_SEEDS: Mapping[int, str] = {
    7: "a follower that was cut off with its leader, and fenced, went on serving reads",
    328: "a broker that learnt late that it had led, after others had (of the simulator)",
    3012: "a move was called off, and what two had acknowledged was left to one whose power went",
    3224: "who learnt late that it had led lacked what a later one committed (of the simulator)",
    3404: "a copy that was taken away from a broker that had just come back (of the simulator)",
    5236: "a disk was taken while who else had its records was about to die (of the simulator)",
    10: "a copy that was taken away and given back is another copy (of the simulator, not of ours)",
}
