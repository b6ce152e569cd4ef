"""How long reports and their parts take."""
