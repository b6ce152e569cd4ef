"""What workers do for catalogs: read them, show how they stand, and compare bundles that somebody asks about."""
