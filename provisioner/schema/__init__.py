"""Structural schemas of custom resources, pure: prune, default, validate, and what changes between two CRDs.

Beside what it exports itself, others may use:

- `cel`: CEL expressions of schemas
- `definition`: CRDs, read and judged
- `diff`: two CRDs compared
- `fields`: refusals in the API server's words: paths and sentences
- `forms`: whether a CRD has the form of one
- `subschemas`: how a node of a schema is read
- `verdicts`: what a change means, for whom
"""

from provisioner.schema.admission.custom_resource import Admission, Candidate, admit, admit_all
from provisioner.schema.admission.steps import default, drop_nulls, embedded_errors, prune, validate
from provisioner.schema.definition.validation import accepts_update, validate_crd
from provisioner.schema.diff.crd import compare
from provisioner.schema.fields import FieldError
from provisioner.schema.version_order import kube_order

__all__ = [
    "Admission",
    "Candidate",
    "FieldError",
    "accepts_update",
    "admit",
    "admit_all",
    "cel",
    "compare",
    "default",
    "definition",
    "diff",
    "drop_nulls",
    "embedded_errors",
    "fields",
    "forms",
    "kube_order",
    "prune",
    "subschemas",
    "validate",
    "validate_crd",
    "verdicts",
]
