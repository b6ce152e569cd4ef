"""Requests that were open before anybody looked who may have written them (0083): everybody may have, until the next round.

Every approver of such a request is then in doubt where its requester is unknown (S05, S43). *Look again* finds out. What
a process of the version before prepares while this runs is not reached.
"""

from django.db import migrations

EVERYBODY = [["Group", "system:serviceaccounts"]]
OPEN = ("preparing", "in_review", "approved", "applying", "restoring", "stale")


def doubt_open_requests(apps, schema_editor):
    known = apps.get_model("approvals", "Request").objects
    known.filter(state__in=OPEN, possible_authors=[]).update(possible_authors=EVERYBODY)


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0088_content_salt"),
    ]

    operations = [
        migrations.RunPython(doubt_open_requests, migrations.RunPython.noop),
    ]
