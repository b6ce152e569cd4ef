"""What pages, REST, metrics and the gate read from the database, one module a subject; nothing here writes.

Callers import the modules, and pass the clusters that the viewer may read (security-rules.md S02).

Modules that other rooms use:

- `account`: what the account page shows: identities, sessions, tokens and chat accounts of one person
- `askers`: requests that a person asked for
- `audit`: who may see which entries of the audit
- `certainty`: which findings only hold if a stored object is as they say
- `changes`: what the page of changes reads beside the report
- `drift`: what differs from what was approved, and what was corrected
- `figures`: figures for the operator: how much there is of what, and since when
- `floating`: the floating references that a deployment follows
- `inbox`: lists of requests: what stands in which tab, narrowed and sorted
- `keyset`: pages of lists that begin after a row
- `lists`: what the pages of deployments and policies show
- `news`: what happened to a person's requests and reviews, and their saved views
- `pages`: what the inbox and the request page show
- `revisions`: which revisions can be gone back to, and which are revoked
- `since_review`: what differs since the viewer reviewed
- `status`: how a request stands: the cause, by whom, and the next step
"""

__all__ = [
    "account",
    "askers",
    "audit",
    "certainty",
    "changes",
    "drift",
    "figures",
    "floating",
    "inbox",
    "keyset",
    "lists",
    "news",
    "pages",
    "revisions",
    "since_review",
    "status",
]
