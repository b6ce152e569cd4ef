"""What says how requests are decided: policies in rows, objects of the clusters, and drafts tried on past requests."""
