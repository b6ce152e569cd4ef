"""What the machine does: claim the row, work outside transactions, record the result. The row says what comes next.

`advance` takes the step that the state of a request calls for, one file each: `prepare` (preparing, stale), `evaluate`
(in review), `approved`, `applying`, `applied` (where what runs is not healthy in time), `restore` (restoring).

Modules that other rooms use:

- `advance`: one look at a request: do what its state calls for, until nothing more is due
- `cataloguing`: what is done for a catalog: it is read, and the cluster shows what was found
- `mirroring`: what the cluster shows of deployments and requests: finalizer, status, conditions and mirrored requests
- `polling`: one look at a reference that may move, and what follows for those who follow it
- `running`: what is done for a revision that runs: its health is read, and its drift found and corrected
- `sources`: from a spec's words to the library's sources, with the operator's limits
- `upgrading`: one look at what catalogs offer to a deployment, and what follows
"""

__all__ = [
    "advance",
    "cataloguing",
    "mirroring",
    "polling",
    "running",
    "sources",
    "upgrading",
]
