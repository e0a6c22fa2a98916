import io

from kraftctl.output import Output
from kraftctl.progress import Progress


def test_what_is_waited_for_is_told_once_a_second_and_not_at_once() -> None:
    err, now = io.StringIO(), [0.0]
    progress = Progress(Output("up", err=err), clock=lambda: now[0])
    for tenths in range(25):
        now[0] = tenths / 10
        progress.tell(f"at {tenths}")
    assert err.getvalue().splitlines() == ["at 10", "at 20"]
