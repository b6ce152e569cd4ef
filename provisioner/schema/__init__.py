"""Structural schemas of custom resources, pure: prune, default, validate, and what changes between two CRDs."""

from provisioner.schema.admitting import Admission, Candidate, admit, admit_all
from provisioner.schema.checked import default, drop_nulls, embedded_errors, prune, validate
from provisioner.schema.comparing import compare
from provisioner.schema.crdify import CrdifyConfig, crdify_triples
from provisioner.schema.crdrules import accepts_update, validate_crd
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
