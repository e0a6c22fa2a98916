"""One drill at a time: each has the machine's cores busy by itself."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        if item.nodeid.startswith("tests/drills/"):
            item.add_marker(pytest.mark.xdist_group("drills"))
