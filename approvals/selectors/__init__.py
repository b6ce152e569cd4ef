"""What pages, REST, metrics and the gate read from the database, one module a subject; nothing here writes.

Callers import the modules, and pass the clusters that the viewer may read (security-rules.md S02).
"""
