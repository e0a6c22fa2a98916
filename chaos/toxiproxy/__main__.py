"""`python -m chaos.toxiproxy`."""

import sys

from chaos.toxiproxy.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
