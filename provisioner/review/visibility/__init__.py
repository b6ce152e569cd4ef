"""What of a report each reader may see: the bundle is for all, objects of the cluster for who may get them (S09)."""
