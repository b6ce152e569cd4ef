"""Structural schemas of custom resources, pure: prune, default, validate, and what changes between two CRDs."""

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
    "compare",
    "default",
    "drop_nulls",
    "embedded_errors",
    "kube_order",
    "prune",
    "validate",
    "validate_crd",
]
