"""Whether an object could be created, asked before the one in its place is deleted: a dry-run under another name.

An update that is refused for a field that cannot change says nothing about a creation: admission policies and webhooks
are asked only about what passed validation, and of a creation other rights are needed. So the new object is tried
beside the old one, and what is refused is a problem while the old one is still there.

What only the trial could meet proves nothing: that its name is another (rights by name, names that mean something or
that the object itself repeats), and that the old object is still there (its share of a quota, its addresses and ports).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.errors import AlreadyExists, ClusterError, FieldConflict, Forbidden, PreconditionFailed, UnknownKind
from provisioner.values import GroupKind, Manifest, ObjectRef

# Their names say what they are, so that under another name they are something else.
_NAMED_BY_CONTENT = frozenset(
    {
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("apiregistration.k8s.io", "APIService"),
        GroupKind("", "Namespace"),
        GroupKind("", "Node"),
    }
)
# Somebody's server answers so for the object that is still there (seen on 1.36.3).
_OF_THE_OLD_ONE = re.compile(
    r"exceeded quota|already allocated|is already in use|only one PriorityClass can be marked as|globalDefault"
    r"|does not support dry run"
)
# A rule of a CRD or a policy that says so is about the name: "config is a singleton, .metadata.name must be 'cluster'".
_OF_THE_NAME = re.compile(r"metadata\.name\b")
# A right to create cannot be narrowed to names; any other can.
_BY_NAME = re.compile(r"cannot (?!create )[a-z]+ resource")
_TAIL = 8
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def refusal(cluster: ClusterClient, manifest: Manifest, *, field_manager: str) -> ClusterError | None:
    """Why the API server would not create the object as the identity of `cluster`; None where it would, or where nobody
    can tell while the old one is there. Raises Unreachable where it, or a webhook, does not answer.
    """
    if manifest.ref.group_kind in _NAMED_BY_CONTENT:
        return None
    try:
        cluster.apply(_elsewhere(manifest), field_manager=field_manager, dry_run=True)
    except ClusterError as exc:
        return None if _is_of_the_trial(manifest.ref, exc) else exc
    return None


def other_name(name: str) -> str:
    """Another name as long as `name`, with the same beginning where it is long enough: any that is valid stays so."""
    length = min(len(name), _TAIL)
    letters = hashlib.sha256(name.encode()).hexdigest().translate(_LETTERS)
    tails = (letters[start : start + length] for start in range(len(letters) - length))
    return name[: len(name) - length] + next(tail for tail in tails if tail != name[len(name) - length :])


def said_of(ref: ObjectRef, error: ClusterError) -> str:
    """The problem in words."""
    return (
        f"{ref} has to be deleted to be made anew, and would then be refused; it was tried as {other_name(ref.name)}: "
        f"{error}. If that is only so because the old one is there, or because of that name, delete it yourself first"
    )


def _elsewhere(manifest: Manifest) -> dict[str, Any]:
    meta = dict(manifest.body.get("metadata") or {})
    return {
        **manifest.body,
        "metadata": {**meta, "name": other_name(manifest.ref.name), "resourceVersion": MUST_NOT_EXIST},
    }


def _is_of_the_trial(ref: ObjectRef, error: ClusterError) -> bool:
    if isinstance(error, AlreadyExists | PreconditionFailed | FieldConflict | UnknownKind):
        return True
    if _OF_THE_OLD_ONE.search(error.server_words) or _OF_THE_NAME.search(error.server_words):
        return True
    if isinstance(error, Forbidden):
        # Of a Secret the server's words are not kept, but for its authorizer's.
        is_unsaid = ref.group_kind == GroupKind("", "Secret") and " cannot " not in str(error)
        return is_unsaid or bool(_BY_NAME.search(error.in_full))
    found = error.details.get("causes")
    causes = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return any(_is_of_the_name(cause, other_name(ref.name)) for cause in causes)


def _is_of_the_name(cause: Mapping[str, Any], other: str) -> bool:
    """Whether a field is refused for what the object is called here, such as a label of a Job that repeats its name.

    Policies and webhooks name no field; their words may hold the name for any reason.
    """
    field, words = str(cause.get("field") or ""), str(cause.get("message") or "")
    return field.startswith("metadata.name") or bool(field and re.search(rf"[\"']{re.escape(other)}[\"']", words))
