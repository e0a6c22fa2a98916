from tests.kraftctl.conftest import invoke


def test_the_demo_is_explained() -> None:
    ran = invoke("demo", "--help")
    assert ran.code == 0
    assert "kill" in ran.out
