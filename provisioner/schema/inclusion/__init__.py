"""Whether every value that one schema accepts is accepted by another: proved, refuted, or not decided.

- `examples`: the smallest value that a schema asks for
- `facets`: limits of scalars as sets of values
- `languages`: regular expressions as languages
- `presence`: fields that have to be there
"""

__all__ = [
    "examples",
    "facets",
    "languages",
    "presence",
]
