"""One custom resource on its way into the API server: pruned, defaulted and validated as the server does it.

- `correlation`: which old value belongs to which new one
- `custom_resource`: the whole way in
- `embedded`: embedded objects
- `lists`: keys of list maps
- `pruning`: prune, drop nulls, default
- `rules`: CEL rules
- `scalars`: single values
- `steps`: each step by itself
- `validation`: values against a schema
"""

__all__ = [
    "correlation",
    "custom_resource",
    "embedded",
    "lists",
    "pruning",
    "rules",
    "scalars",
    "steps",
    "validation",
]
