"""Whether every value that one schema accepts is accepted by another: proved, refuted, or not decided.

- `branches`: anyOf and oneOf
- `examples`: the smallest value that a schema asks for
- `facets`: limits of scalars as sets of values
- `languages`: regular expressions as languages
- `presence`: fields that have to be there
- `scalars`: types, formats and enums
"""

__all__ = [
    "branches",
    "examples",
    "facets",
    "languages",
    "presence",
    "scalars",
]
