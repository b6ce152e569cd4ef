"""`make demo`: everything that production has, on one machine, from nothing but Python.

Modules that other rooms use:

- `bundles`: the demo's bundles as archives: the same bytes on every run, so that their checksums can stand in specs
- `issuers`: the demo's file of issuers and who there is at its own one, which `demo.issuer` serves
- `kubeconfig`: from the kubeconfig of who starts the demo to one of the service's own, with fewer rights
- `seeds`: the demo's people, rights, deployments and policy, as data
- `supervisor`: starts the demo's processes in order and stops every one of them; each logs to a file of its own
"""

__all__ = [
    "bundles",
    "issuers",
    "kubeconfig",
    "seeds",
    "supervisor",
]
