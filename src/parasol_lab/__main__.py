"""`python -m parasol_lab`: the command with the laboratory's commands, also where nothing is installed."""

from parasol.cli import add_command, main
from parasol_lab.commands import bench, paper, theorem

if __name__ == "__main__":
    for module in (paper, theorem, bench):
        add_command(module.__name__.rpartition(".")[2], module.app)
    main()
