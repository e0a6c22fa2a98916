from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftlog import config_keys as keys
from kraftlog.config import explain, load, topic_config
from kraftlog.config_keys import ALL_KEYS, Scope, environment_name
from kraftlog.errors import ConfigError
from tests.kraftlog.test_config_types import raw_values

NAMES = sorted({name for key in ALL_KEYS for name in key.names.values()})


def toml(tmp_path: Path, text: str) -> str:
    path = tmp_path / "b1.toml"
    path.write_text(text)
    return str(path)


def test_flags_win_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = toml(tmp_path, "log.segment.bytes = 101\nlog.roll.ms = 2\nlog.retention.ms = 3\n")
    environment = {"KRAFTLOG_LOG_SEGMENT_BYTES": "102", "KRAFTLOG_LOG_ROLL_MS": "5s", "HOME": "/"}
    flags = {"log.segment.bytes": "103"}
    config = load(Scope.BROKER, flags=flags, environment=environment, file=file)
    assert config[keys.SEGMENT_BYTES] == 103
    assert config.source(keys.SEGMENT_BYTES) == "flag --log.segment.bytes"
    assert config[keys.SEGMENT_MS] == 5_000
    assert config.source(keys.SEGMENT_MS) == "environment KRAFTLOG_LOG_ROLL_MS"
    assert config[keys.RETENTION_MS] == 3
    assert config.source(keys.RETENTION_MS) == f"file {file}"
    assert config[keys.RETENTION_BYTES] == -1
    assert config.source(keys.RETENTION_BYTES) == "default"


def test_dotted_keys_tables_and_quoted_keys_mean_the_same(tmp_path: Path) -> None:
    dotted = 'log.dirs = ["/a", "/b"]\nlog.cleaner.enable = false\nlog.segment.bytes = 99\n'
    tables = '[log]\ndirs = "/a,/b"\nsegment.bytes = 99\n[log.cleaner]\nenable = "false"\n'
    quoted = '"log.dirs" = "/a,/b"\n"log.cleaner.enable" = false\n"log.segment".bytes = 99\n'
    for text in (dotted, tables, quoted):
        config = load(Scope.BROKER, file=toml(tmp_path, text))
        assert config[keys.LOG_DIRS] == ("/a", "/b")
        assert config[keys.LOG_CLEANER_ENABLE] is False
        assert config[keys.SEGMENT_BYTES] == 99


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    file = toml(tmp_path, '"log.roll.ms" = 1\nlog.roll.ms = 2\n')
    with pytest.raises(ConfigError, match=r"log\.roll\.ms is given twice \(file .*b1\.toml\)"):
        load(Scope.BROKER, file=file)


def test_a_misspelt_key_is_refused_with_the_right_one(tmp_path: Path) -> None:
    file = toml(tmp_path, "log.segmnt.bytes = 99\n")
    with pytest.raises(ConfigError) as caught:
        load(Scope.BROKER, file=file)
    assert caught.value.message == (
        f"'log.segmnt.bytes' (file {file}) is not a configuration key of a broker"
    )
    assert caught.value.hint == "did you mean log.segment.bytes?"


def test_a_misspelt_variable_is_refused_by_its_own_name() -> None:
    with pytest.raises(ConfigError, match="environment KRAFTLOG_LOG_DIR") as caught:
        load(Scope.BROKER, environment={"KRAFTLOG_LOG_DIR": "/a"})
    assert caught.value.hint == "did you mean log.dirs?"


def test_a_key_like_no_other_has_no_suggestion() -> None:
    with pytest.raises(ConfigError, match="remove it"):
        load(Scope.CONTROLLER, flags={"zookeeper.connect": "zk:2181"})


def test_a_topics_name_in_a_brokers_file_is_told_the_brokers_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a key of a topic; here it is log\.segment\.bytes"):
        load(Scope.BROKER, file=toml(tmp_path, "segment.bytes = 99\n"))
    with pytest.raises(ConfigError, match=r"a key of a topic; here it is log\.roll\.ms"):
        load(Scope.BROKER, environment={"KRAFTLOG_SEGMENT_MS": "99"})
    with pytest.raises(ConfigError, match="a key of a broker; a client does not read it"):
        load(Scope.CLIENT, flags={"log.roll.ms": 1})


def test_each_process_takes_its_own_from_a_shared_environment() -> None:
    environment = {"KRAFTLOG_LOG_ROLL_MS": "9", "KRAFTLOG_LOG_DIRS": "/a", "KRAFTLOG_RESOLVE": "r"}
    controller = load(Scope.CONTROLLER, environment=environment)
    assert controller[keys.LOG_DIRS] == ("/a",)
    assert controller.source(keys.SEGMENT_MS) == "default"


def test_a_topic_sets_some_and_has_the_rest_from_its_broker() -> None:
    broker = load(Scope.BROKER, flags={"log.segment.bytes": 100, "log.roll.ms": "1h"})
    topic = topic_config({"segment.bytes": "200"}, broker=broker)
    assert topic[keys.SEGMENT_BYTES] == 200
    assert topic.source(keys.SEGMENT_BYTES) == "topic config"
    assert topic[keys.SEGMENT_MS] == 3_600_000
    assert topic.source(keys.SEGMENT_MS) == "flag --log.roll.ms"
    assert topic[keys.RETENTION_BYTES] == -1


def test_a_broken_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read: No such file"):
        load(Scope.BROKER, file=str(tmp_path / "none.toml"))
    for text in ("log.dirs = /data\n", "log.roll.ms = " + "9" * 5_000, "a = " + "[" * 5_000):
        with pytest.raises(ConfigError, match=r"b1\.toml is not TOML"):
            load(Scope.BROKER, file=toml(tmp_path, text))
    (tmp_path / "b1.toml").write_bytes(b"log.dirs = '\xff'\n")
    with pytest.raises(ConfigError, match=r"b1\.toml is not TOML"):
        load(Scope.BROKER, file=str(tmp_path / "b1.toml"))


def test_a_wrong_value_is_refused_even_where_it_is_overridden(tmp_path: Path) -> None:
    file = toml(tmp_path, 'log.roll.ms = "soon"\n')
    with pytest.raises(ConfigError, match=r"log\.roll\.ms = 'soon' \(file .*\) must be"):
        load(Scope.BROKER, flags={"log.roll.ms": 5}, file=file)


@given(
    st.sampled_from(Scope),
    st.dictionaries(st.sampled_from(NAMES) | st.text(), raw_values, max_size=4),
)
def test_any_mapping_parses_or_is_refused_by_a_key_it_names(
    scope: Scope, flags: dict[str, object]
) -> None:
    try:
        config = load(scope, flags=flags)
    except ConfigError as refused:
        text = str(refused)
        assert any(name in text or repr(name)[:70] in text for name in flags)
    else:
        for key in ALL_KEYS:
            given_here = key.names.get(scope) in flags
            assert (config.source(key) == "default") != given_here


@given(st.dictionaries(st.sampled_from([environment_name(name) for name in NAMES]), st.text()))
def test_any_environment_parses_or_is_refused_by_a_variable_it_names(
    environment: dict[str, str],
) -> None:
    try:
        load(Scope.BROKER, environment=environment)
    except ConfigError as refused:
        assert any(variable in str(refused) for variable in environment)  # noqa: PT017


@pytest.mark.parametrize("name", NAMES)
def test_every_key_explains_itself(name: str) -> None:
    text = explain(name)
    assert name in text
    assert "must be" in text
    assert "default" in text


def test_explain_by_either_name() -> None:
    assert explain("segment.bytes") == explain("log.segment.bytes")
    assert explain("segment.bytes").splitlines() == [
        "segment.bytes: A segment that would grow past this size is closed and a new one begun.",
        "  must be a whole number from 14 to 2147483647",
        "  default 1073741824",
        "  topic: segment.bytes",
        "  broker: log.segment.bytes or KRAFTLOG_LOG_SEGMENT_BYTES",
    ]


def test_explain_guesses_too() -> None:
    with pytest.raises(ConfigError, match=r"did you mean segment\.bytes\?"):
        explain("segment.byte")
