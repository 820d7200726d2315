"""The program ``garlic``, which the package installs. ``python -m garlic_ann`` runs it, too."""

import sys

from ._garlic import program


def main() -> int:
    """Runs the program with the arguments of the process and returns its exit code.

    The code runs in the process of Python. It takes over Ctrl-C, which ends a running command with exit code 130.
    """
    return program(["garlic", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
