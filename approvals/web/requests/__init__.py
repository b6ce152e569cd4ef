"""The page of a request: what changes, what was found, who decides, and the form to decide.

Modules that other rooms use:

- `activity`: the tab of a request that tells what happened to it: rounds, reviews, and the apply with its phases
- `changes`: what a request changes, object by object and line by line
- `findings`: all findings of a report, in pages, by filters that need no script
- `pictures`: the pictures of a report: an account's rights, and what changes in a schema
- `requests`: the request page: may this enter?
- `shown`: which live values of a report a viewer may see: those of objects that Kubernetes lets them get
- `sources`: what the sources of a spec ask for, and what they were resolved to, in words
- `waivers`: accepting findings on the request page: what the viewer may accept, and what reviewers accepted
"""

__all__ = [
    "activity",
    "changes",
    "findings",
    "pictures",
    "requests",
    "shown",
    "sources",
    "waivers",
]
