import sys

from brokers.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
