from kraftlog.config import load
from kraftlog.config_keys import Scope
from metadata_log.decide.bootstrap import bootstrap, no_op
from metadata_log.effective import ALL_BROKERS
from metadata_log.image import EMPTY
from metadata_log.records import NoOp
from metadata_log.replay import replay_all
from tests.metadata_log.clusters import Cluster


def test_a_log_begins_with_a_version_and_a_minimum_in_sync() -> None:
    static = load(Scope.CONTROLLER, flags={"min.insync.replicas": "2"})
    decision = bootstrap(EMPTY, static=static)
    image = replay_all(EMPTY, (each.record for each in decision.records), 0)
    assert dict(image.features) == {"metadata.version": 1}
    assert dict(image.config(ALL_BROKERS)) == {"min.insync.replicas": "2"}


def test_a_log_begins_once() -> None:
    assert bootstrap(Cluster().image).records == ()


def test_a_sign_of_life_changes_nothing() -> None:
    assert [each.record for each in no_op().records] == [NoOp()]
