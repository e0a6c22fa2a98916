"""Views of metadata for tests: three brokers, and topics as asked for."""

from collections.abc import Iterable

from brokers.metadata_view import ImageView
from brokers.topic_settings import SettingsBook
from kraftlog.config import Config, load
from kraftlog.config_keys import Scope
from metadata_log.records import Record
from tests.brokers.images import image_of, registered


def static(**flags: str) -> Config:
    """A broker's own configuration; `log_roll_ms` is `log.roll.ms`."""
    return load(
        Scope.BROKER, flags={name.replace("_", "."): value for name, value in flags.items()}
    )


def view_of(*parts: Iterable[Record]) -> ImageView:
    brokers = [registered(broker_id, rack=f"r{broker_id}") for broker_id in (1, 2, 3)]
    return ImageView(image_of(*brokers, *parts), SettingsBook(static()))
