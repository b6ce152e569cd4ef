"""The kinds of notification targets by name: a new one is a file beside this one, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from approvals.events.kinds.kind import TargetKind
from approvals.events.kinds.webhook import WebhookTarget

TARGET_KINDS: Mapping[str, TargetKind] = {kind.name: kind for kind in (WebhookTarget(),)}
