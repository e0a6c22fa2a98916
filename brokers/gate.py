"""Who may answer, and when.

A broker that was cut off, or that slept, cannot know whether another one leads by now. A produce
with acks=all needs no rule for that: it is answered when every in-sync replica has fetched it in
this leader epoch, which a deposed leader never sees happen. All else that clients get, acks 0 and 1
and every read, is answered only while one of these holds:

- the last heartbeat that the controller answered was sent less than one session ago, or
- for a leader alone: every other in-sync replica has fetched, in this leader epoch, within two
  fetch waits. Then none of them follows a newer leader, and without one of them there is none. A
  leader that is the whole ISR may go on if min.insync.replicas is 1: nobody else could be elected.

So the loss of the whole controller quorum stops metadata, not data. Reads of followers go back to
the leader then: that its leader answers proves nothing to a follower, since both may be cut off
together, and fenced, while others lead.

Who was told that it is fenced takes nothing at all, also where it has not read yet who leads
instead: what it took could only time out, or be cut off again.
"""

from typing import Protocol


class ServingGate(Protocol):
    def session_alive(self, now_ms: int) -> bool:
        """Whether the last answered heartbeat was sent less than one session ago.

        `now_ms` is monotonic.
        """
        ...

    @property
    def told_fenced(self) -> bool:
        """Whether the controller said that it fenced us while we served: others lead by now what we
        led, or nobody does.
        """
        ...


class AlwaysOpen:
    """For tools and tests that have no controller: the session never ends."""

    def session_alive(self, now_ms: int) -> bool:  # noqa: ARG002 - the protocol's signature
        return True

    @property
    def told_fenced(self) -> bool:
        return False
