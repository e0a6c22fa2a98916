"""Versions of requests: what a server tells of them, and how it refuses others."""

import pytest

from kraftlog.apis import Api, ApiTable
from kraftlog.errors import InvalidRequest, UnsupportedVersion
from kraftlog.rpc import common_pb2

TABLE = ApiTable("a server", (Api("api_versions", 18), Api("fetch", 1, 2, 5), Api("ends")))


def header(*, api_key: int = 0, api_version: int = 0) -> common_pb2.RequestHeader:
    return common_pb2.RequestHeader(api_key=api_key, api_version=api_version)


def test_the_table_is_told_to_whoever_asks() -> None:
    reply = TABLE.reply()  # R23
    assert reply.software == "a server"
    fetch = next(each for each in reply.versions if each.name == "fetch")
    assert (fetch.api_key, fetch.min_version, fetch.max_version) == (1, 2, 5)


@pytest.mark.parametrize("version", [1, 6, -1])
def test_a_version_outside_the_range_is_refused_with_the_range(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"versions 2 to 5 here, not {version}"):
        TABLE.check("fetch", header(api_version=version))


def test_one_version_is_named_alone() -> None:
    with pytest.raises(UnsupportedVersion, match="ends has version 0 here, not 3"):
        TABLE.check("ends", header(api_version=3))


def test_any_version_may_ask_for_the_versions() -> None:
    assert TABLE.check("api_versions", header(api_version=99)).name == "api_versions"


@pytest.mark.parametrize("name", [None, "", "transmogrify"])
def test_an_unknown_request_is_refused(name: str | None) -> None:
    with pytest.raises(UnsupportedVersion, match="does not know request 77"):
        TABLE.check(name, header(api_key=77))


def test_the_number_must_fit_the_request() -> None:
    assert TABLE.check("fetch", header(api_key=1, api_version=2)).api_key == 1
    assert TABLE.check("fetch", header(api_version=2)).api_key == 1
    with pytest.raises(InvalidRequest, match="api key 3 with a fetch request"):
        TABLE.check("fetch", header(api_key=3, api_version=2))
