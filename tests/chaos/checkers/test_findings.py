from chaos.checkers.findings import SHOWN, Anomaly, Finding, Judgement, counted
from tests.chaos.checkers.scripts import KEY, Script

LOST = Finding(Anomaly.LOST, KEY, "'a' at offset 0 is gone", (0,), ("a",))
REORDERED = Finding(Anomaly.REORDERED, KEY, "'b' is before 'a'")


def test_a_finding_is_told_with_the_operations_that_prove_it() -> None:
    operation = Script().send("a", 0)
    finding = Finding(Anomaly.LOST, KEY, "'a' is gone", (0,), ("a",), (operation,))
    assert str(LOST) == "lost orders-0: 'a' at offset 0 is gone"
    assert str(finding) == f"lost orders-0: 'a' is gone\n    {operation}"
    told = finding.as_json()
    assert (told["anomaly"], told["key"], told["words"]) == ("lost", KEY, "'a' is gone")
    assert told["operations"] == [
        {
            "id": 0,
            "process": "producer",
            "op": "send",
            "outcome": "ok",
            "invoked": 0.0,
            "ended": 0.5,
            "text": str(operation),
        }
    ]


def test_of_many_offsets_the_first_are_shown() -> None:
    many = Finding(Anomaly.SKIPPED, KEY, "", tuple(range(100)), tuple(range(100)))
    assert many.as_json()["offsets"] == many.as_json()["values"] == tuple(range(SHOWN))


def test_findings_are_counted_by_what_a_report_shows() -> None:
    found = counted([LOST, LOST, REORDERED, Finding(Anomaly.M5, "c1", "")])
    assert found == {"lost": 2, "unseen": 0, "duplicated": 0, "reordered": 1}


def test_a_judgement_in_one_sentence() -> None:
    good = Judgement((), {"acked": 3})
    assert good.is_good
    assert good.words == "Nothing is wrong: 3 acked."
    bad = good.with_findings([LOST, REORDERED, LOST])
    assert not bad.is_good
    assert bad.words == "3 findings: lost (2), reordered (1); 3 acked."
    assert (good.findings, bad.counts) == ((), good.counts)
