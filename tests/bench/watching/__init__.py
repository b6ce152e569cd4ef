"""How soon the watch sees what changes, and what it costs, where there is much to watch."""
