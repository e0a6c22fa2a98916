from pathlib import Path

import pytest

from chaos.live.run_directory import META, RunDirectory, runs_in
from kraftlog.errors import ConfigError


def test_a_run_knows_what_it_was(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "baseline", 7)
    directory.write_meta({"drill": "baseline", "seed": 7})
    meta = directory.read(META)
    assert directory.run_id.startswith("baseline-7-")
    assert (meta["run_id"], meta["drill"], meta["seed"]) == (directory.run_id, "baseline", 7)
    assert directory.is_running()  # its harness is this process
    assert list(runs_in(tmp_path)) == [directory]
    assert RunDirectory.create(tmp_path, "baseline", 7) != directory


def test_a_run_whose_harness_is_gone_does_not_run(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "baseline", 1)
    directory.write(META, {"harness": [2**22 + 1, 5]})
    assert not directory.is_running()
    directory.write(META, {"harness": None})
    assert not directory.is_running()


def test_the_data_goes_and_the_words_stay(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path, "baseline", 1)
    directory.drop_data()
    for name in ("b1", "c1", "resolve"):
        (directory.cluster / name).mkdir(parents=True)
    (directory.cluster / "b1.log").write_text("hello")
    directory.drop_data()
    assert {path.name for path in directory.cluster.iterdir()} == {"b1.log", "resolve"}


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_what_is_no_run_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"no run of a drill: it has no meta\.json"):
        RunDirectory(tmp_path).read(META)
    (tmp_path / META).write_text(text)
    with pytest.raises(ConfigError, match="no JSON"):
        RunDirectory(tmp_path).read(META)
    assert list(runs_in(tmp_path / "nowhere")) == []
