"""The plugin as its users have it: in a test run of their own, in a directory of their own."""

import shutil
from pathlib import Path

import pytest

from kraftlog.testing.plugin import Wish, wish_of

pytest_plugins = ["pytester"]

FLAGS = ("-p", "kraftlog.testing.plugin", "-p", "no:cacheprovider", "-p", "no:xdist")


def test_what_a_marker_asks_for(pytester: pytest.Pytester) -> None:
    pytester.plugins.append("kraftlog.testing.plugin")
    items = pytester.getitems(
        """
        import pytest

        def test_plain(): ...

        @pytest.mark.kraft(controllers=3, brokers=2, config={"min.insync.replicas": 2})
        def test_marked(): ...

        @pytest.mark.kraft(3)
        def test_wrong(): ...

        @pytest.mark.kraft(broker=3)
        def test_misspelt(): ...
        """
    )
    plain, marked, wrong, misspelt = items
    assert wish_of(plain) == Wish()
    assert wish_of(marked) == Wish(3, 2, config={"min.insync.replicas": 2})
    assert wish_of(marked).key != Wish(3, 2).key
    for item in (wrong, misspelt):
        with pytest.raises(pytest.UsageError, match=r"mark\.kraft"):
            wish_of(item)


@pytest.mark.slow
def test_records_failures_and_a_user_s_own_modules(pytester: pytest.Pytester) -> None:
    # A user's own files with our packages' names must not disturb anything.
    for name in ("storage", "brokers", "quorum", "metadata_log", "chaos"):
        pytester.makepyfile(**{name: "raise AssertionError('this is the user's own')"})
    pytester.makepyfile(
        test_users="""
        import pytest

        def test_a_record(kraft_topic, kraft_producer, kraft_consumer):
            assert kraft_producer.send(kraft_topic, b"one").result(30).offset == 0
            assert next(iter(kraft_consumer)).value == b"one"

        def test_another_has_its_own_topic(kraft_cluster, kraft_topic, kraft_producer):
            assert kraft_producer.send(kraft_topic, b"two").result(30).offset == 0
            assert kraft_cluster.brokers == ["b1"]

        def test_a_shared_one_is_not_broken(kraft_cluster):
            with pytest.raises(Exception, match="other tests use this cluster too"):
                kraft_cluster.kill("b1")

        @pytest.mark.kraft(controllers=3, faults=True)
        def test_an_isolated_controller(kraft_cluster):
            kraft_cluster.isolate(kraft_cluster.controller())
            kraft_cluster.heal()
            kraft_cluster.wait_healthy("60s")

        @pytest.mark.kraft(brokers=3, faults=True, config={"min.insync.replicas": 2})
        def test_failover(kraft_cluster, kraft_topic, kraft_producer):
            kraft_cluster.kill(kraft_cluster.leader(kraft_topic))
            assert kraft_producer.send(kraft_topic, b"x").result(60).offset == 0

        @pytest.mark.kraft(faults=True)
        def test_that_fails(kraft_cluster):
            kraft_cluster.kill("b1")
            assert not "a reason"
        """
    )
    result = pytester.runpytest_subprocess(*FLAGS, "--kraft-keep")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- kraftlog cluster -*",
            "its data stays in *",
            "c1 (running)",
            "*listening*",
            "b1 (ended -9)",
            "*RECOVERY -> RUNNING*",
        ]
    )
    kept = next(line for line in result.outlines if line.startswith("its data stays in "))
    directory = Path(kept.removeprefix("its data stays in "))
    assert (directory / "b1" / "meta.properties").exists()
    shutil.rmtree(directory)
