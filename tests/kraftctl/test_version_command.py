from tests.kraftctl.conftest import invoke
from tests.kraftctl.test_schema_command import check


def test_the_version_is_told_in_both_ways() -> None:
    told = invoke("version")
    assert (told.code, told.out.startswith("kraftlog ")) == (0, True)
    assert invoke("--version") == told
    check(invoke("version", "-o", "json"), "version")
