"""Structural schemas of custom resources, pure: prune, default, validate, and what changes between two CRDs."""

from provisioner.schema.admission.custom_resource import Admission, Candidate, admit, admit_all
from provisioner.schema.definition.validation import accepts_update, validate_crd
from provisioner.schema.diff.crd import compare
from provisioner.schema.fields import FieldError
from provisioner.schema.names import kube_order

__all__ = [
    "Admission",
    "Candidate",
    "FieldError",
    "accepts_update",
    "admit",
    "admit_all",
    "compare",
    "kube_order",
    "validate_crd",
]
