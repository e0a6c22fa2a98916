"""`python -m kraftctl.supervise SHAPE`: what `kraftctl up -d` leaves behind."""

import sys
from collections.abc import Mapping, Sequence

from kraftctl.exit_codes import INTERRUPTED, OK, exit_code
from kraftctl.output import Json
from kraftctl.supervisor import Shape, supervise
from kraftlog.errors import KraftError


def main(argv: Sequence[str]) -> int:
    [text] = argv
    try:
        supervise(Shape.from_json(text), _ready)
    except KraftError as error:
        sys.stderr.write(f"error: {error.message}\nhint:  {error.hint}\n")
        return exit_code(error)
    except KeyboardInterrupt:
        sys.stderr.write("error: it was told to stop before it was ready\n")
        return INTERRUPTED
    return OK


def _ready(described: Json) -> None:
    if isinstance(described, Mapping):
        sys.stderr.write(f"cluster {described['cluster_id']} is up at {described['bootstrap']}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
