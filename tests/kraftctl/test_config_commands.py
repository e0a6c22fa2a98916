import pytest

from kraftctl.config_commands import resource_of
from kraftlog.admin_types import ConfigResource
from kraftlog.errors import ConfigError
from tests.kraftctl.conftest import Run, invoke


@pytest.mark.slow
def test_configs_are_set_shown_and_unset(kraftctl: Run, topic: str) -> None:
    resource = f"topic:{topic}"
    done = kraftctl("config", "set", resource, "segment.bytes=1048576")
    assert (done.code, done.out.count("; ")) == (0, 1)
    assert f"undo: kraftctl config unset {resource} segment.bytes\n" in done.out
    again = kraftctl("config", "set", resource, "segment.bytes=1048576")
    assert f"undo: kraftctl config set {resource} segment.bytes=1048576\n" in again.out
    shown = kraftctl("config", "get", resource, "segment.bytes", "-o", "json").data
    assert shown == [{"name": "segment.bytes", "value": "1048576", "source": "topic"}]
    assert kraftctl("config", "set", resource, "segment.bytes=tiny").code == 2
    assert kraftctl("config", "get", resource, "segment.size").code == 2
    assert kraftctl("config", "unset", resource, "segment.bytes").code == 0
    assert "segment.bytes" not in kraftctl("config", "get", resource).out
    assert "segment.bytes" in kraftctl("config", "get", resource, "--all").out
    assert kraftctl("config", "set", "brokers", "log.retention.ms=5d").code == 0
    assert kraftctl("config", "unset", "brokers", "log.retention.ms").code == 0


def test_keys_are_explained_without_a_cluster() -> None:
    assert "must be" in invoke("config", "explain", "retention.ms").out
    ran = invoke("config", "explain", "retention.mss")
    assert (ran.code, "did you mean" in ran.err) == (2, True)


def test_resources() -> None:
    assert resource_of("topic:a:b") == ConfigResource.topic("a:b")
    assert resource_of("broker:1") == ConfigResource.broker(1)
    assert resource_of("brokers") == ConfigResource.broker()
    for text in ("topic:", "broker:x", "group:g", ""):
        with pytest.raises(ConfigError):
            resource_of(text)
