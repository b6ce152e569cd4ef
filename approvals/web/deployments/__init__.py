"""The pages of deployments: what runs, whether it is what was approved, and the form of a wish.

Modules that other rooms use:

- `deployments`: deployments: what runs, since when, and is it what was approved?
- `installing`: a new deployment of a package of a catalog: the form filled in, and the rights that it takes
- `offers`: the names that the form of a deployment offers to pick from
- `spec`: what a spec asks for, in words
"""

__all__ = [
    "deployments",
    "installing",
    "offers",
    "spec",
]
