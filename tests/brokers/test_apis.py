from brokers.apis import APIS
from kraftlog._client_wire import API_VERSION
from kraftlog.apis import API_KEYS
from kraftlog.rpc import broker_pb2


def test_every_request_of_the_envelope_has_versions() -> None:  # R23
    fields = {field.name for field in broker_pb2.BrokerRequest.DESCRIPTOR.oneofs[0].fields}
    assert {api.name for api in APIS.reply().versions} == fields | {"fetch_range"}


def test_what_the_client_sends_is_understood() -> None:
    for told in APIS.reply().versions:
        assert told.min_version <= API_VERSION <= told.max_version
        if told.name in API_KEYS:
            assert API_KEYS[told.name] == told.api_key
