"""Reports: what a change does to a cluster, as findings that people decide by. PURE: facts come in.

- `base`: facts, findings' records, differences and safe text
- `beside`: which findings are made of live objects outside of the plan
- `checks`: one module for each thing that is looked at
- `cluster_rights`: who may do what in a whole cluster, for `pratique rbac`
- `crd_diff`: two definitions compared, for `pratique crd-diff`
- `crds`: CRDs against the objects that exist
- `foreign`: what is told of objects of others that stand in the way
- `frame`: facts in, report out
- `judged`: whether each field that changes was judged by a rule
- `output`: HTML, terminal, pictures, headline
- `preflight`: whether the installing account may do it all
- `rights`: who may do what, before and after
- `rules`: the rules in words, a Markdown file each
- `secret_texts`: values of Secrets that stand in variables and arguments, too
- `withholding`: which findings live objects decide, told apart from all others
- `workloads`: pods and volumes wherever objects hide them
"""

__all__ = [
    "base",
    "beside",
    "checks",
    "cluster_rights",
    "crd_diff",
    "crds",
    "foreign",
    "frame",
    "judged",
    "output",
    "preflight",
    "rights",
    "rules",
    "secret_texts",
    "withholding",
    "workloads",
]
