"""May the installing account do all that the content needs, and what exactly is it lacking (PRE-01 to PRE-12)."""

from __future__ import annotations

from provisioner.review.base.facts import Check, Reads
from provisioner.review.preflight.findings import namespaces, preflight_findings

CHECK = Check("preflight", changes=preflight_findings, mentions=namespaces, reads=frozenset({Reads.ROLES}))
