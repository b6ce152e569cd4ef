"""Attacks on the doors: addresses, limits, slow clients, what stands in front."""
