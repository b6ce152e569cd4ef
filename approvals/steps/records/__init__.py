"""What a step writes down of each object before and after it touches it, and what is read from that later.

Modules that other rooms use:

- `failures`: what did not succeed of an apply, in words
- `hook_runs`: the record of hooks, a port of the library over our table
- `inventory`: the inventory port of the library over our table: what will be touched is written before it is touched
- `notes`: what an apply did to each object, written down in small batches together with the claim
- `reviewed`: what was reviewed, as it was stored, and proved to be that (promise 1)
- `source_history`: what the sources of a request were resolved to earlier, from the requests before it
- `way_back`: what a request to go back to a revision cannot undo, from what was recorded of the revisions since
"""

__all__ = [
    "failures",
    "hook_runs",
    "inventory",
    "notes",
    "reviewed",
    "source_history",
    "way_back",
]
