"""What pages and the API read: one module a door. Callers pass the clusters that the viewer may read (S02)."""
