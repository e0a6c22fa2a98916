from pathlib import Path

import pytest

from kraftctl.exit_codes import CONFLICT
from kraftctl.supervise import main
from kraftctl.supervisor import Shape, locked


def test_a_second_supervisor_says_why_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(str(tmp_path)):
        assert main([Shape(str(tmp_path)).to_json()]) == CONFLICT
    assert "runs already" in capsys.readouterr().err
