import logging

import pytest

from spark_connector.loss import DataLost, data_lost


def test_lost_data_is_an_error_unless_it_may_be_lost(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLost, match="failOnDataLoss"):
        data_lost("offsets 0 to 5 of t-0", fail=True)
    with caplog.at_level(logging.WARNING):
        data_lost("offsets 0 to 5 of t-0", fail=False)
    assert "offsets 0 to 5 of t-0" in caplog.text
