import pytest

from chaos.peers.compare import HEADER, main, row
from chaos.peers.drill import QuorumResult


def test_a_row_of_the_table() -> None:
    results = [
        QuorumResult(
            gaps=(0.5, 1.0), converged=(), write_p50=0.005, acked=10, unknown=1, findings=()
        ),
        QuorumResult(gaps=(0.7,), converged=(), write_p50=0.007, acked=20, unknown=0, findings=()),
    ]
    line = "| pysyncobj | kill | 3 | 0.70 / 1.00 s | 5.0 ms | 30 | 1 | 0 |"
    assert row("pysyncobj", "kill", results) == line
    assert line.count("|") == HEADER.count("|")


@pytest.mark.slow
@pytest.mark.drill
@pytest.mark.soak
def test_both_engines_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rounds", "1"]) == 0
    said = capsys.readouterr().out
    assert "| kraftlog | kill | 1 |" in said
    assert "| pysyncobj | kill | 1 |" in said
