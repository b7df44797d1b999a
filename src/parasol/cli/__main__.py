"""`python -m parasol.cli`."""

from parasol.cli import main

main()
