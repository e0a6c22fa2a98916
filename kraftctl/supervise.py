"""`python -m kraftctl.supervise DIRECTORY CONTROLLERS BROKERS PROFILE [KEY=VALUE]...`: what
`kraftctl up -d` leaves behind.
"""

import sys
from collections.abc import Sequence

from kraftctl.exit_codes import OK, exit_code
from kraftctl.supervisor import Shape, supervise
from kraftlog.errors import KraftError
from kraftlog.local import LocalCluster


def main(argv: Sequence[str]) -> int:
    directory, controllers, brokers, profile, *settings = argv
    config = {key: value for key, _, value in (text.partition("=") for text in settings)}
    shape = Shape(directory, int(controllers), int(brokers), profile, config)
    try:
        supervise(shape, _ready)
    except KraftError as error:
        sys.stderr.write(f"{error}\n")
        return exit_code(error)
    return OK


def _ready(cluster: LocalCluster) -> None:
    sys.stderr.write(f"cluster {cluster.cluster_id} is up at {cluster.bootstrap}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
