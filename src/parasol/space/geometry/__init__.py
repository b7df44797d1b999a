"""Domains and their boundaries: inside or not, how far, which way is out, and what each piece is called."""
