"""How sources, readers and writers get to Spark's workers: in a wrapping that any worker can open.

They are of this package, and a worker without it could only say that a module is missing. The
function that unpacks them travels as a whole, not by its name, and says what to do about it.
"""

import pickle
import sys
from collections.abc import Callable

from pyspark import cloudpickle


def unpack(payload: bytes) -> object:
    """Runs where nothing of ours may be installed: what it needs it imports itself."""
    import pickle  # noqa: PLC0415
    import platform  # noqa: PLC0415
    import sys  # noqa: PLC0415

    try:
        kind, state = pickle.loads(payload)  # noqa: S301  from our own driver
    except ModuleNotFoundError as error:
        # No error class of ours is there either.
        raise ModuleNotFoundError(
            f"a Spark worker on {platform.node()} has no module {error.name!r} (install"
            f" kraftlog[spark] for {sys.executable} there, or send it with --py-files)",
            name=error.name,
        ) from None
    made = kind.__new__(kind)
    vars(made).update(state)
    found: object = made
    return found


class Travels:
    """A base of what Spark pickles on its driver for tasks."""

    def __reduce__(self) -> tuple[Callable[[bytes], object], tuple[bytes]]:
        return unpack, (pickle.dumps((type(self), vars(self))),)


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
