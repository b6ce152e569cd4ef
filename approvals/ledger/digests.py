"""What reviews bind to (security-rules.md S03)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

# Changing these is no pivot: they change neither what is applied nor how.
NO_OPTION = ("paused", "revisionHistoryLimit", "upgradePolicy")
NO_OPTION_OF_SOURCE = ("interval",)


def digest_of(parts: Iterable[str]) -> str:
    """SHA-256 over the parts, each with its length in front, so that no two lists of parts look the same."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return f"sha256:{digest.hexdigest()}"


def digest_of_spec(spec: Mapping[str, Any]) -> str:
    """Over all that an object of Kubernetes says."""
    return digest_of([json.dumps(spec, sort_keys=True)])


def options_digest(spec: Mapping[str, Any]) -> str:
    """Over every field of the spec but NO_OPTION, and of its sources but NO_OPTION_OF_SOURCE.

    It stays in the database: whoever knows the rest of a spec can try values of its `config` on it (S09).
    """
    options = {key: value for key, value in spec.items() if key not in NO_OPTION}
    if isinstance(sources := options.get("sources"), list):
        options["sources"] = [
            {key: value for key, value in source.items() if key not in NO_OPTION_OF_SOURCE}
            if isinstance(source, Mapping)
            else source
            for source in sources
        ]
    return digest_of([json.dumps(options, sort_keys=True, separators=(",", ":"), ensure_ascii=False)])


@dataclass(frozen=True, slots=True)
class ReviewSubject:
    """What one review covers: this content, this plan and these options, in this round of this request.

    `salt` is known to nobody, so that people who see the digest try no values of the spec on it (S09).
    """

    cluster_uid: str
    deployment_uid: str
    request_uid: str
    round: int
    content_digest: str
    plan_digest: str
    options_digest: str
    service_account_uid: str
    salt: str

    @property
    def digest(self) -> str:
        parts = [str(getattr(self, each.name)) for each in fields(self)]
        # Reviews of what was asked for before digests had a salt stay bound to what was reviewed.
        return digest_of(parts if self.salt else parts[:-1])
