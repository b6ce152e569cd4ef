"""Packages that an operator could install beside Pratique. The tests do so; they are no part of Pratique."""
