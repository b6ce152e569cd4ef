"""What tells whether requests of a change set are alike, kept with each report (approvals.services.sets.groups)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from django.utils.crypto import salted_hmac

from approvals.access.sight import exists, hidden_action, is_of_stored_secret, is_secret, key_of, new_objects
from approvals.ledger.digests import NO_OPTION
from approvals.models import Request
from provisioner.render import serialise
from provisioner.review.base.facts import SECRET
from provisioner.review.base.made_texts import HiddenTexts
from provisioner.review.base.record import ref_record
from provisioner.review.secret_texts import SecretTexts
from provisioner.values import Action, Content, Manifest, ObjectIdentity

Record = Mapping[str, Any]


def likeness_of(
    request: Request, content: Content, body: Record, texts: Mapping[ObjectIdentity, SecretTexts], hidden: HiddenTexts
) -> dict[str, Any]:
    """`digest` is the same for requests that are alike: in purpose, options, rendered objects, planned actions and
    findings. `needs` are the kinds, with their namespaces, whose objects a reader has to get before they may know that.

    Of Secrets only what every reader of the cluster may know is compared (S38), and no value that a chart made up
    (S44). The digest is keyed, so that nobody who reads the database can try values on it.
    """
    actions, findings, new = body["plan"]["actions"], body["findings"], new_objects(body)
    objects = [manifest for manifest in content.everything if manifest.ref.group_kind != SECRET]
    compared = [
        request.purpose,
        content.install_namespace,
        content.service_account,
        # spec.config is compared by what is rendered of it.
        {name: value for name, value in request.spec.items() if name not in (*NO_OPTION, "config", "sources")},
        hashlib.sha256(
            serialise(
                Manifest(hidden.of_object(manifest.ref, manifest.body), hook=manifest.hook) if hidden else manifest
                for manifest in objects
            )
        ).hexdigest(),
        sorted(json.dumps(_known_action(action)) for action in actions),
        sorted(json.dumps(_known_finding(finding, new)) for finding in findings),
    ]
    canonical = json.dumps(compared, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    quoted = [manifest.ref.identity for manifest in objects if manifest.ref.identity in texts]
    needs = [action["ref"] for action in actions if exists(action) and not is_secret(action["ref"])]
    needs += [ref_record(secret) for identity in quoted for secret in texts[identity].secrets]
    return {
        "digest": salted_hmac("pratique: likeness of requests", canonical, algorithm="sha256").hexdigest(),
        "needs": [
            list(need)
            for need in sorted(
                {tuple(ref[part] or "" for part in ("group", "version", "kind", "namespace")) for ref in needs}
            )
        ],
    }


def _known_action(planned: Record) -> list[Any]:
    """What everybody may know of a planned action; of a new Secret its type and keys."""
    shown = hidden_action(planned) if exists(planned) else planned
    after = (planned["after"] or {}) if is_secret(planned["ref"]) and planned["action"] == Action.CREATE else {}
    keys = sorted(str(key) for part in ("data", "stringData") for key in after.get(part) or {})
    said = [shown[name] for name in ("action", "isProved", "problemCode")]
    return [*key_of(planned["ref"]), *said, bool(planned.get("returnsAs")), after.get("type"), keys]


def _known_finding(finding: Record, new: Collection[tuple[str, ...]]) -> list[Any]:
    """Of a finding about a Secret that the cluster may hold how severe it is, as everybody is told."""
    names = ["severity", "isNew"]
    names += [] if is_of_stored_secret(finding, new) else ["fingerprint", "rule", "message"]
    return [finding[name] for name in names]
