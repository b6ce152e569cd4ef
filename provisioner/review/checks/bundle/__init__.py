"""Checks of what a bundle is and brings, beside what happens to its objects."""
