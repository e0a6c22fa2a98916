"""`python -m chaos.peers`: the same drill on both engines, in one run."""

import sys

from chaos.peers.compare import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
