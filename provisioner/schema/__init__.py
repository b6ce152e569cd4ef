"""Structural schemas of custom resources, pure: prune, default, validate, and what changes between two CRDs."""

from provisioner.schema.admission.custom_resource import Admission, Candidate, admit, admit_all
from provisioner.schema.admission.steps import default, drop_nulls, embedded_errors, prune, validate
from provisioner.schema.definition.validation import accepts_update, validate_crd
from provisioner.schema.diff.crd import compare
from provisioner.schema.diff.crdify import CrdifyConfig, crdify_triples
from provisioner.schema.fields import FieldError

__all__ = [
    "Admission",
    "Candidate",
    "CrdifyConfig",
    "FieldError",
    "accepts_update",
    "admit",
    "admit_all",
    "compare",
    "crdify_triples",
    "default",
    "drop_nulls",
    "embedded_errors",
    "prune",
    "validate",
    "validate_crd",
]
