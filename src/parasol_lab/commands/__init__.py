"""The commands `parasol paper`, `parasol theorem` and `parasol bench`, which parasol finds as entry points."""
