"""Change sets: what they decide together, and the order in which they are applied."""
