"""What an apply would do, object by object, asked by dry-run; nothing is changed here.

- `dry_run`: the plan of a content, proved by dry-run
- `expected_refusals`: refusals that the bundle itself will mend
- `known`: what planning knows, and the forms of a planned action
- `left_out_objects`: objects whose API appeared later
- `ownership`: whose an object is
- `pruning`: what the new content no longer has
- `replacing`: what cannot be changed in place
"""

__all__ = [
    "dry_run",
    "expected_refusals",
    "known",
    "left_out_objects",
    "ownership",
    "pruning",
    "replacing",
]
