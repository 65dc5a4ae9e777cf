"""The command `stereod`, which is a package of its own."""

import sys

ABSENT = """\
stereod: the Python package is installed, the program is not. To add it:
  pip install 'stereod[program]'
or run it without an installation:
  uvx --from 'stereod[program]' stereod ..."""


def main() -> None:
    try:
        from stereod_program import main as program
    except ModuleNotFoundError:
        sys.exit(ABSENT)
    program()
