"""Wheel and sdist: what they hold, and that they work where no checkout is."""
