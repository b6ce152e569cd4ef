"""Checks of what a bundle is and brings, beside what happens to its objects.

- `catalogs`: a bundle that its catalog does not let follow, deprecates, changed, or has depend on others
- `chart_values`: which values of a chart changed
- `content`: Secrets and the like in the bundle
- `hooks`: what the hooks of a chart do, when they run, and what they leave
- `lookups`: which objects of the cluster a chart was told of
- `requirements`: what an operator bundle asks of its cluster beyond its own objects
- `source_moves`: sources that went backwards: an older commit, a rewritten history, a lower version
- `unused_files`: files of the sources that the format did not use
"""

__all__ = [
    "catalogs",
    "chart_values",
    "content",
    "hooks",
    "lookups",
    "requirements",
    "source_moves",
    "unused_files",
]
