"""``python -m runcert`` is the same as ``runcert``."""

from runcert.cli import main

if __name__ == "__main__":
    main()
