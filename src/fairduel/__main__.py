"""Run the command line with ``python -m fairduel``."""

from fairduel.cli import main

if __name__ == "__main__":
    main()
