"""What an apply would do, object by object, asked by dry-run; nothing is changed here.

- `comparing`: two plans of one content
- `dry_run`: what would be done to one object, proved by dry-run
- `expected_refusals`: refusals that the bundle itself will mend
- `helm_releases`: what a Helm release holds, and how it changes hands
- `known`: what planning knows, and the forms of a planned action
- `left_out_objects`: objects whose API appeared later
- `ownership`: whose an object is
- `planning`: the plan of a content
- `pruning`: what the new content no longer has
- `replacing`: what cannot be changed in place
- `supposed`: what would come of objects of others
"""

__all__ = [
    "comparing",
    "dry_run",
    "expected_refusals",
    "helm_releases",
    "known",
    "left_out_objects",
    "ownership",
    "planning",
    "pruning",
    "replacing",
    "supposed",
]
