"""`python -m threadbook.adapters.cli`: the program where there is no console script."""

from . import main

main()
