"""The commands of `pratique-manage`, and what `make demo` starts; nothing imports this room."""
