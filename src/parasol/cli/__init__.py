"""The command `parasol`: one command per stage, no mathematics.

Other packages add commands by entry points of the group `parasol.commands`, each a `typer.Typer`; what commands share is
here for them too.
"""

from parasol.faces import face

__getattr__, __dir__, __all__ = face(__name__)
