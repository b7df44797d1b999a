"""`python -m parasol.cli`."""

from parasol.cli import main

if __name__ == "__main__":  # processes that solve in parallel may import this module
    main()
