"""Whether the installing ServiceAccount may do all that a bundle needs, and which rules it lacks.

- `answer`: which rules are missing
- `facts`: what it is decided from
- `findings`: the same as findings
- `text`: the manifests that would give it
- `users`: who else can act as the account
"""

__all__ = [
    "answer",
    "facts",
    "findings",
    "text",
    "users",
]
