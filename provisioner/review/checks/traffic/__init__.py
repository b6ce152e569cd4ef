"""Checks of where traffic goes and who is let in."""
