"""Objects of a cluster that say how requests are decided."""
