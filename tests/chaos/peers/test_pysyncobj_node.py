import os

import pytest

from chaos.history import Outcome
from chaos.peers.pysyncobj_node import configuration, main
from chaos.peers.quorums import PeerQuorum


def test_it_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--own", "127.0.0.1:1"])
    assert "--peers" in capsys.readouterr().err


def test_it_keeps_a_journal_and_a_dump(tmp_path: os.PathLike[str]) -> None:
    conf = configuration(os.fspath(tmp_path))
    assert conf.journalFile == f"{os.fspath(tmp_path)}/journal"
    assert conf.fullDumpFile == f"{os.fspath(tmp_path)}/dump"


@pytest.mark.slow
def test_what_was_acked_is_in_the_journals_of_all(quorum: PeerQuorum) -> None:
    client = quorum.client()
    assert client.create_topic("journaled", seconds=40).outcome is Outcome.OK
    client.close()
    quorum.await_agreement()
    for name in quorum.names:
        with open(f"{quorum.directory}/{name}/journal", "rb") as journal:
            assert b"journaled" in journal.read()
