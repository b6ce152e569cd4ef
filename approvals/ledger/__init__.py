"""How requests change: each move with its audit row and its wake in one transaction, for services and steps alike.

Modules that other rooms use:

- `authors`: whose write it was: the watch waits for a door of ours that is about to say so
- `claims`: claims that lapse: one worker at a time on a request or a deployment, one watcher at a time on a cluster
- `digests`: what reviews bind to
- `drifts`: what is known of drift: which objects to compare again, what was found, what was corrected
- `endings`: how a request ends that cannot come right, with its words and who can do what about it
- `evaluations`: what policies said of a round, kept for people
- `held`: the claims that this process holds: renewed while it lives, and given back when it is told to stop
- `labels`: the labels that guards selected a request by, now and earlier
- `moves`: moving a request along the transition table
- `optionals`: what is known of objects that a running revision left out because their API is absent
- `packages`: which bundles of catalogs requests are about, and which packages deployments follow
- `pivots`: from what was seen in a cluster to requests
- `quotas`: how many open requests a cluster and a requester may have, whichever door they came by
- `references`: floating references of sources: who follows them, when they are looked at, and what was seen
- `rounds`: the end of a round without an outcome: what its reviews were about is no more, so that they no longer count
- `strays`: what is known of writes that a dead or stopped worker may still have under way
- `waiting`: what a request waits for: when it is looked at again, and what ends the wait before that
"""

__all__ = [
    "authors",
    "claims",
    "digests",
    "drifts",
    "endings",
    "evaluations",
    "held",
    "labels",
    "moves",
    "optionals",
    "packages",
    "pivots",
    "quotas",
    "references",
    "rounds",
    "strays",
    "waiting",
]
