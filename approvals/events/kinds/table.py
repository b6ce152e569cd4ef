"""The kinds of notification targets by name: a new one is a file beside this one, and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from approvals.events.kinds.discord import DiscordTarget
from approvals.events.kinds.google_chat import GoogleChatTarget
from approvals.events.kinds.kind import TargetKind
from approvals.events.kinds.mail import MailTarget
from approvals.events.kinds.mattermost import MattermostTarget
from approvals.events.kinds.pagerduty import PagerDutyTarget
from approvals.events.kinds.slack import SlackTarget
from approvals.events.kinds.teams import TeamsTarget
from approvals.events.kinds.webhook import WebhookTarget
from approvals.models import NotificationTarget

TARGET_KINDS: Mapping[str, TargetKind] = {
    kind.name: kind
    for kind in (
        WebhookTarget(),
        SlackTarget(),
        MattermostTarget(),
        TeamsTarget(),
        DiscordTarget(),
        GoogleChatTarget(),
        MailTarget(),
        PagerDutyTarget(),
    )
}


def shown_address(target: NotificationTarget) -> str:
    return TARGET_KINDS[target.kind].show_address(target.address)
