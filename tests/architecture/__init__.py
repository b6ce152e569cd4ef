"""How the repository is laid out, as rules that fail."""
