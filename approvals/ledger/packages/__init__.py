"""Which bundles of catalogs requests are about, and which packages deployments follow."""
