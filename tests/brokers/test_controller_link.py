import socket

import pytest

from brokers.controller_link import Active, ControllerFinder
from kraftlog.errors import InvalidRequest, NetworkError, NotController, RequestTimedOut
from kraftlog.rpc import controller_pb2
from tests.brokers.controllers import Reply, Request, linked, not_controller, scripted
from tests.loops import run


def heartbeat() -> Request:
    return Request(heartbeat=controller_pb2.HeartbeatRequest(broker_id=1))


def agree(_: Request) -> Reply:
    return Reply(heartbeat=controller_pb2.HeartbeatReply(is_caught_up=True))


# -- whom to ask


def test_the_active_controller_of_the_log_is_asked_first() -> None:
    active = Active(3, "c2")
    finder = ControllerFinder(["c1", "c2", "c3"], active=lambda: active)
    assert finder.choose() == "c2"
    finder.avoid("c2")
    assert finder.choose() == "c1"
    finder.avoid("c1")
    finder.avoid("c3")
    assert finder.choose() == "c2"  # everybody had a turn


def test_whoever_knows_the_higher_epoch_is_believed() -> None:
    log = Active(3, "c2")
    finder = ControllerFinder(["c1", "c2", "c3"], active=lambda: log)
    finder.redirect("c2", Active(4, "c3"))
    assert finder.choose() == "c3"
    log = Active(5, "c1")
    assert finder.choose() == "c1"
    finder.redirect("c1", Active(2, "c2"))  # old news, and c1 says it is not active
    assert finder.choose() != "c1"


def test_a_new_epoch_makes_up_for_silence_in_an_old_one() -> None:
    log = Active(3, "c2")
    finder = ControllerFinder(["c1", "c2"], active=lambda: log)
    assert finder.choose() == "c2"
    finder.avoid("c2")
    assert finder.choose() == "c1"
    log = Active(4, "c2")
    assert finder.choose() == "c2"


def test_voters_of_the_log_are_asked_too() -> None:
    finder = ControllerFinder(["seed"], voters=lambda: ("c1", "c2"))
    finder.avoid("c1")
    finder.avoid("c2")
    assert finder.choose() == "seed"


# -- asking


def test_a_request_says_who_asks_and_of_which_cluster() -> None:  # R15
    async def story() -> None:
        async with scripted(agree) as controller, linked(controller.address) as link:
            reply = await link.ask(heartbeat(), api_key=63, timeout_ms=5_000)
            assert reply.heartbeat.is_caught_up
            [asked] = controller.asked
            assert (asked.header.api_key, asked.header.client_id) == (63, "broker 1")
            assert asked.cluster_id == b"c" * 16
            assert asked.timeout_ms == 5_000

    run(story())


def test_a_redirection_is_followed_by_the_next_attempt() -> None:  # R3
    async def story() -> None:
        async with (
            scripted(agree) as active,
            scripted(lambda _: not_controller(active.address)) as standby,
            linked(standby.address) as link,
        ):
            with pytest.raises(NotController):
                await link.ask(heartbeat(), api_key=63, timeout_ms=5_000)
            await link.ask(heartbeat(), api_key=63, timeout_ms=5_000)
            assert (len(standby.asked), len(active.asked)) == (1, 1)

    run(story())


def test_one_that_is_gone_is_left_alone() -> None:
    async def story() -> None:
        async with (
            scripted(agree) as controller,
            linked("127.0.0.1:1", controller.address) as link,
        ):
            with pytest.raises(NetworkError) as caught:
                await link.ask(heartbeat(), api_key=63, timeout_ms=5_000)
            assert caught.value.outcome_unknown
            await link.ask(heartbeat(), api_key=63, timeout_ms=5_000)
            assert len(controller.asked) == 1

    run(story())


def test_one_that_hangs_costs_no_more_than_the_deadline() -> None:
    async def story() -> None:
        with socket.create_server(
            ("127.0.0.1", 0)
        ) as silent:  # the system answers, and nobody else
            async with linked(f"127.0.0.1:{silent.getsockname()[1]}") as link:
                with pytest.raises(RequestTimedOut):
                    await link.ask(heartbeat(), api_key=63, timeout_ms=100)

    run(story())


def test_a_refusal_is_raised_with_who_said_it() -> None:
    def refuse(_: Request) -> Reply:
        reply = Reply()
        reply.error.code, reply.error.message = 42, "no"
        return reply

    async def story() -> None:
        async with scripted(refuse) as controller, linked(controller.address) as link:
            with pytest.raises(InvalidRequest) as caught:
                await link.ask(heartbeat(), api_key=63, timeout_ms=5_000)
            assert caught.value.node == controller.address

    run(story())
