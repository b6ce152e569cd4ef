"""Checks of permissions: everybody's after the change, and those of the installing account."""
