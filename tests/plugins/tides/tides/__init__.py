"""Tide tables: what a gauge says is fetched, made into a ConfigMap for each port, and looked at by a check."""
