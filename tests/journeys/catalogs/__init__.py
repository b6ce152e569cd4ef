"""Catalogs, what changes in them, and deployments that follow their packages."""
