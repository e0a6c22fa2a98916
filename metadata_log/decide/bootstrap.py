"""How a metadata log begins, and what it says while nothing happens."""

from collections.abc import Mapping

from kraftlog import config_keys as keys
from kraftlog.config import Config
from metadata_log.decide import Decision, caused
from metadata_log.decide.configs import MIN_ISR
from metadata_log.decide.features import SUPPORTED
from metadata_log.effective import ALL_BROKERS, BUILT_IN
from metadata_log.image import Image
from metadata_log.records import (
    METADATA_VERSION,
    Cause,
    CauseKind,
    ConfigRecord,
    FeatureLevel,
    FeatureRange,
    NoOp,
    Record,
)


def bootstrap(
    image: Image,
    *,
    supported: Mapping[str, FeatureRange] = SUPPORTED,
    static: Config = BUILT_IN,
) -> Decision[None]:
    """The first records of an empty log; nothing if it is not empty.

    The minimum of in-sync replicas is written down, so that from then on every node reads the same
    (see `effective`).
    """
    records: list[Record] = []
    if METADATA_VERSION not in image.features:
        records.append(FeatureLevel(METADATA_VERSION, supported[METADATA_VERSION].max_level))
    if MIN_ISR not in image.config(ALL_BROKERS):
        records.append(ConfigRecord(ALL_BROKERS, MIN_ISR, str(static[keys.MIN_INSYNC_REPLICAS])))
    return Decision(caused(Cause(CauseKind.BOOTSTRAP), *records), None)


def no_op() -> Decision[None]:
    """A sign of life: the log moves on, and whoever does not follow can be seen to lag."""
    return Decision(caused(Cause(CauseKind.IDLE), NoOp()), None)
