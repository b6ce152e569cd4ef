"""Checks of what happens to objects: created, changed, deleted, and what does not come back."""
