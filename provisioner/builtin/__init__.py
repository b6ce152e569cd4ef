"""Kubernetes' own kinds, judged without a cluster: what the API server refuses of a new or changed object. Pure.

Read in this order: `judging` asks the schemas of Kubernetes (`schemas`, `fits`), makes of old and new what the server
would hold (`merging`, `facts`), and asks the rules of the kind (`metadata`, `pods`, `workloads`, `services`, `storage`,
`policies`).
"""

from provisioner.builtin.changes import FieldRefusal, Judgement, WhyUnknown
from provisioner.builtin.facts import POD_PATHS, defaulted, fixed_fields
from provisioner.builtin.forms import quantity
from provisioner.builtin.judgement import judge, knows
from provisioner.builtin.schemas import MINORS, Schemas, schemas_of

__all__ = [
    "MINORS",
    "POD_PATHS",
    "FieldRefusal",
    "Judgement",
    "Schemas",
    "WhyUnknown",
    "defaulted",
    "fixed_fields",
    "judge",
    "knows",
    "quantity",
    "schemas_of",
]
