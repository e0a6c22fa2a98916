"""What to do when records that were to be read are gone."""

import logging

from kraftlog.errors import ErrorCode, KraftError

logger = logging.getLogger(__name__)


class DataLost(KraftError):
    """Records that were to be read are gone: retention, deletion, or a topic made anew."""

    code = ErrorCode.OFFSET_OUT_OF_RANGE


class TopicGone(KraftError):
    """A topic that was to be read is deleted, or made anew under the same name."""

    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def data_lost(message: str, *, fail: bool) -> None:
    """An error where `failOnDataLoss` is true, else a warning."""
    if fail:
        raise DataLost(
            f"data was lost: {message}",
            hint="read from a later offset, or set failOnDataLoss to false to go on without it",
        )
    logger.warning("data was lost: %s", message)
