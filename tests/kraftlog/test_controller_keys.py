from kraftlog import controller_keys
from kraftlog.config import load
from kraftlog.config_keys import ALL_KEYS, Scope
from kraftlog.controller_keys import CONTROLLER_KEYS


def test_all_of_them_are_known() -> None:
    assert set(CONTROLLER_KEYS) <= set(ALL_KEYS)


def test_brokers_and_controllers_agree_on_the_session() -> None:
    key = controller_keys.BROKER_SESSION_TIMEOUT_MS
    for scope in (Scope.BROKER, Scope.CONTROLLER):
        config = load(scope, flags={"broker.session.timeout.ms": "3s"})
        assert config[key] == 3_000
