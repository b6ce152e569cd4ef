"""What catalogs offer, as it was read last, and which bundle a source takes of it (`bundle_choice`).

Whoever shows something of a catalog asks first whether the viewer may get it (access).
"""
