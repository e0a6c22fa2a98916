"""`python -m chaos.sim`."""

import sys

from chaos.sim.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
