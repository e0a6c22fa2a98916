"""Which requests a server understands, and in which versions (KIP-35).

A new field that old readers may ignore needs no new version. What changes the meaning of a request
gets one, and the old one stays: the clients of the first release go on working.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kraftlog.errors import InvalidRequest, UnsupportedVersion
from kraftlog.rpc import common_pb2

NO_API_KEY = -1
API_VERSIONS = "api_versions"

# Kafka's numbers. A request that Kafka does not have has none.
API_KEYS = {
    "produce": 0,
    "fetch": 1,
    "list_offsets": 2,
    "metadata": 3,
    "api_versions": 18,
    "create_topics": 19,
    "delete_topics": 20,
    "delete_records": 21,
    "init_producer_id": 22,
    "epoch_ends": 23,
    "describe_configs": 32,
    "create_partitions": 37,
    "elect_leaders": 43,
    "alter_configs": 44,
    "reassign": 45,
    "list_reassignments": 46,
    "update_features": 57,
    "describe_cluster": 60,
    "unregister_broker": 64,
    "describe_topics": 75,
}


@dataclass(frozen=True, slots=True)
class Api:
    """One kind of request. The name is that of its field in the envelope."""

    name: str
    api_key: int = NO_API_KEY
    """Kafka's number of it, where Kafka has one."""
    min_version: int = 0
    max_version: int = 0

    @property
    def versions(self) -> str:
        if self.min_version == self.max_version:
            return f"version {self.min_version}"
        return f"versions {self.min_version} to {self.max_version}"


class ApiTable:
    """The requests of one kind of server."""

    def __init__(self, software: str, apis: Iterable[Api]) -> None:
        self._software = software
        self._apis = {api.name: api for api in apis}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._apis)

    def find(self, name: str | None) -> Api | None:
        """The request with this name; None: only a newer server knows it."""
        return self._apis.get(name or "")

    def check(self, name: str | None, header: common_pb2.RequestHeader) -> Api:
        """The request, if the header fits it. UnsupportedVersion tells the range."""
        api = self.find(name)
        if api is None:
            raise UnsupportedVersion(
                f"{self._software} does not know request {header.api_key}",
                hint="ApiVersions tells which requests it knows",
            )
        if api.name == API_VERSIONS:
            return api  # whoever asks this cannot know yet which version to use
        if not api.min_version <= header.api_version <= api.max_version:
            raise UnsupportedVersion(
                f"{api.name} has {api.versions} here, not {header.api_version}",
                hint="ApiVersions tells which versions there are",
            )
        if header.api_key not in (api.api_key, 0, NO_API_KEY):
            raise InvalidRequest(f"api key {header.api_key} with a {api.name} request")
        return api

    def reply(self) -> common_pb2.ApiVersionsReply:
        return common_pb2.ApiVersionsReply(
            versions=[
                common_pb2.ApiVersion(
                    name=api.name,
                    api_key=api.api_key,
                    min_version=api.min_version,
                    max_version=api.max_version,
                )
                for api in self._apis.values()
            ],
            software=self._software,
        )
