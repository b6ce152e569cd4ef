"""Whether each field that changes was judged by a rule, and what is said of those that none judged (S36).

- `harmless`: fields that are harmless by nature, each with its reason
- `leaves`: the smallest fields in which two states of an object differ
- `new_objects`: fields of new objects that need no rule
- `unjudged`: what no rule judges, as findings
"""

__all__ = ["harmless", "leaves", "new_objects", "unjudged"]
