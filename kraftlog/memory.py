"""What is freed is needed again in a moment: so the memory allocator is taught to keep it.

A message of 1 MiB is built, sent and freed, many times a second. At first glibc gives the end of
its heap back to the system each time, and gets it back page by page: a producer that copies 256 KiB
twice for each request then spends three quarters of its CPU on page faults.
"""

KEPT_BYTES = 32 << 20
"""Free memory at the end of a heap is kept up to this size."""


def keep_freed_memory() -> None:
    """For servers and clients, when they start.

    glibc learns from the largest block that was got from the system and freed: what is not larger
    comes from the heap from then on, and twice as much is kept at its end. Nothing touches this
    block, so it costs nothing; and a program that has freed a larger one is left as it is.
    """
    bytes(KEPT_BYTES // 2)
