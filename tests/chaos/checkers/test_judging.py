from chaos.checkers import judge
from tests.chaos.checkers.scripts import FAIL, UNKNOWN, Script, named


def test_all_judges_of_a_history_speak() -> None:
    script = Script()
    script.send("a", 0)
    script.send("b", 1)
    script.send("c", outcome=FAIL)
    script.send("d", outcome=UNKNOWN)
    script.poll((1, "b"), by="final")
    script.create("t", 3)
    script.read([], 3)
    script.event("controller", leader="c1", epoch=4)
    script.event("controller", leader="c2", epoch=4)
    found = judge(script.history)
    assert named(found.findings) == ["lost", "M2", "not linearizable", "Q1"]
    assert found.counts == {
        "acked": 2,
        "read": 1,
        "unknown": 1,
        "failed": 1,
        "lost": 1,
        "unseen": 0,
        "duplicated": 0,
        "reordered": 0,
    }


def test_another_process_may_be_the_final_reader() -> None:
    script = Script()
    script.send("a", 0)
    script.poll((0, "a"), by="early")
    script.poll(by="late")
    assert judge(script.history).is_good
    assert named(judge(script.history, final_read="late").findings) == ["unseen"]


def test_an_epoch_of_the_quorum_has_one_leader() -> None:  # Q1
    script = Script()
    for leader, epoch in (("c1", 1), ("c2", 2), ("c1", 1), ("c1", 3)):
        script.event("controller", leader=leader, epoch=epoch)
    script.event("controller", leader=None, epoch=3)
    assert judge(script.history).is_good
    script.event("controller", leader="c3", epoch=2)
    (finding,) = judge(script.history).findings
    assert (finding.anomaly, finding.key) == ("Q1", "quorum")
    assert finding.words == "c2 and c3 both lead epoch 2, seen at 5.000 s"


def test_a_leader_epoch_of_a_partition_has_one_leader() -> None:  # P4
    script = Script()
    script.event("leader", topic="orders", partition=0, leader="b1", epoch=7)
    script.event("leader", topic="orders", partition=1, leader="b2", epoch=7)
    script.event("controller", leader="c1", epoch=7)
    script.event("isr", topic="orders", partition=0, leader="b1", epoch=7)
    assert judge(script.history).is_good
    script.event("isr", topic="orders", partition=0, leader="b3", epoch=7)
    (finding,) = judge(script.history).findings
    assert (finding.anomaly, finding.key) == ("P4", "orders-0")
    assert "b1 and b3 both lead epoch 7" in finding.words
