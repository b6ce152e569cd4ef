"""Reports: what a change does to a cluster, as findings that people decide by. PURE: facts come in."""
