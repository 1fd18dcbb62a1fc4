"""The entry point of `penstock` and of `python -m penstock`."""

import sys


def main() -> int:
    """Runs one command and returns its exit code, as `penstock.cli.main` does.

    Ctrl-C during the imports, which take a moment, is exit code 130 too.
    """
    try:
        from penstock.core.standard_streams import open_standard_streams

        open_standard_streams()
        from penstock.cli.main import main as run_command
    except KeyboardInterrupt:
        return 130
    return run_command()


if __name__ == "__main__":
    sys.exit(main())
