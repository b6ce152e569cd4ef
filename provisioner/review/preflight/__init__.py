"""Whether the installing ServiceAccount may do all that a bundle needs, and which rules it lacks."""
