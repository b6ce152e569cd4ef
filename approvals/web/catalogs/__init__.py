"""Pages of catalogs: what they offer, and what would change."""
