"""Whether the installing ServiceAccount may do all that a bundle needs, and which rules it lacks.

- `answer`: which rules are missing
- `facts`: what it is decided from
- `findings`: the same as findings
- `needs`: what a bundle needs
- `obstacles`: what the least rights of an installer leave open
- `places`: whether namespace and kind of an object are there
- `text`: the manifests that would give it
- `users`: who else can act as the account
"""

__all__ = [
    "answer",
    "facts",
    "findings",
    "needs",
    "obstacles",
    "places",
    "text",
    "users",
]
