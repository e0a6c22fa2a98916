from brokers.cluster import PartitionId
from brokers.controller_calls import ControllerCalls
from brokers.controller_link import ControllerFinder
from brokers.controller_wire import Heartbeat
from brokers.requests import IsrChange
from kraftlog.rpc import controller_pb2 as pb
from kraftlog.types import Uuid
from tests.brokers.controllers import Reply, Request, scripted
from tests.brokers.test_controller_wire import REGISTRATION
from tests.loops import run


def answer(request: Request) -> Reply:
    """Something that fits whatever was asked."""
    kind = request.WhichOneof("request") or ""
    reply = Reply(offset=9)
    getattr(reply, kind).SetInParent()
    if kind == "allocate_producer_ids":
        reply.allocate_producer_ids.count = 5
    return reply


def test_every_call_speaks_for_the_present_registration() -> None:
    async def story() -> None:
        registered = (1, 70)
        async with scripted(answer) as controller:
            calls = ControllerCalls(
                ControllerFinder([controller.address]),
                Uuid(b"c" * 16),
                client_id="broker at host:9092",
                resolve=str,
                identity=lambda: registered,
            )
            await calls.register(REGISTRATION, 5_000)
            beat = Heartbeat(
                broker_id=1,
                broker_epoch=70,
                applied_offset=0,
                want_fence=True,
                want_shut_down=False,
            )
            await calls.heartbeat(beat, 5_000)
            registered = (1, 71)  # anew
            await calls.alter_partitions([IsrChange(PartitionId(b"t" * 16, 0), 0, 0, ())])
            assert await calls.allocate_producer_ids() == range(5)
            assert (await calls.create_topics(["a"])).offset == 9
            await calls.close()
            kinds = [request.WhichOneof("request") for request in controller.asked]
            assert kinds == [
                "register_broker",
                "heartbeat",
                "alter_partitions",
                "allocate_producer_ids",
                "create_topics",
            ]
            assert controller.asked[2].alter_partitions.broker_epoch == 71
            assert controller.asked[3].allocate_producer_ids.broker_epoch == 71
            names = {request.header.client_id for request in controller.asked}
            assert names == {"broker at host:9092"}
            assert pb.HeartbeatReply() == answer(controller.asked[1]).heartbeat

    run(story())
