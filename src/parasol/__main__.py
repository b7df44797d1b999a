"""`python -m parasol`: the command."""

from parasol.cli import main

if __name__ == "__main__":
    main()
