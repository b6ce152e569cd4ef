"""The only room that meets Kubernetes: its API, who may do what, and how objects enter it, settle and leave.

- `apply`: carries out an approved plan, and puts back what others changed
- `choices`: the fields that content leaves to the API server
- `client`: connections, answers, refusals, discovery, access
- `compare`: two objects, without what the server fills in
- `dependents`: what goes with an object that is deleted
- `drift`: what others did to our objects
- `evidence`: what reports need of live objects, read in bounds
- `health`: whether objects are what their specs ask for
- `inventory`: the record of what is ours
- `keep_policies`: by which words an object says that it is to be kept
- `kept_data`: whether claims and volumes that were to stay do
- `latecomers`: what was created in a CRD or namespace since its report
- `order`: which object comes first
- `plan`: what an apply would do
- `tracking`: the labels and annotations that we write
"""

__all__ = [
    "apply",
    "choices",
    "client",
    "compare",
    "dependents",
    "drift",
    "evidence",
    "health",
    "inventory",
    "keep_policies",
    "kept_data",
    "latecomers",
    "order",
    "plan",
    "tracking",
]
