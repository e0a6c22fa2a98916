"""`python -m kraftctl`, and the script `kraftctl`."""

from kraftctl.cli import main


def run() -> None:
    main(prog_name="kraftctl")


if __name__ == "__main__":
    run()
