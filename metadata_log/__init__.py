"""Metadata as an event log: what the records mean.

The metadata log is a list of *records* (`records`): this broker registered, that partition has a
new leader. All state is a fold over them: `replay(image, record, offset)` gives the next *image*,
and it is the only function that does. Controllers and brokers run the same fold over the same
records, so at one offset they have the same image (M5), which `digest(image)` shows.

    records ──replay──▶ image ──decide──▶ records ──▶ the log ──commit──▶ replay, everywhere
                          │
                          ├─ snapshot ─▶ records that make the same image again
                          └─ delta ────▶ what changed between two images, for those who act on it

The controller *decides* with functions of `decide`: image and request in, `Decision` out, which is
records, each with its cause, and the answer. A refusal is an exception of `kraftlog.errors`. They
change nothing: the controller applies the records to its pending image, proposes them to the
quorum, and answers when they are committed. If it loses leadership it drops the pending image.
A request that carries a client id and a request id leaves a `RequestDone` in the same batch, so
that its repeat is answered with the first answer, by whoever leads then (M3).

Work that may touch many partitions (fencing, unfencing, a rebalance) is cut into events of at most
500: such a decision has an `agenda` of what is left, with which it is taken up again.

The rules that hold for every image, M7 and M9 among them, are functions of `rules`.

What this does not do: it knows no clock, no dice, no socket, no disk and no task. Sessions and
timers are the controller's; a function that needs chance is given it (`draw`).
"""
