"""Whether objects are what their specs ask for: kstatus, CEL checks, the reasons, and waiting for it.

- `cel_checks`: health checks of the spec, evaluated
- `completion`: waiting for what runs to an end
- `observation`: the health of many objects, once
- `watch`: waiting for it
"""

__all__ = [
    "cel_checks",
    "completion",
    "observation",
    "watch",
]
