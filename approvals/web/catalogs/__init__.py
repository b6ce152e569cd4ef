"""The pages of catalogs: which there are and how each stands, what one offers, a package, and what would change.

The words and pictures of a package are its publisher's: they are shown as text, and an icon as points alone.

Modules that other rooms use:

- `catalogs`: which catalogs there are, how each stands, and what one offers to whom
- `changes`: what would change from one bundle of a package to another
- `packages`: a package: what it is, which versions there are and what may follow what, and where it runs
- `searching`: one search over the packages of all catalogs that the viewer may read
"""

__all__ = [
    "catalogs",
    "changes",
    "packages",
    "searching",
]
