"""Subject digests and audit entries get salts. What was made before stays as it was reviewed and written; its digests
are no longer shown once it is settled, and mirrors of it are written anew."""

import functools
import secrets

from django.db import migrations, models

OPEN = ["preparing", "in_review", "approved", "applying", "restoring", "stale"]


def mirror_settled_anew(apps, schema_editor):
    requests = apps.get_model("approvals", "Request").objects
    requests.exclude(subject_digest="").exclude(state__in=OPEN).update(mirrored_at=None)


class Migration(migrations.Migration):
    dependencies = [("approvals", "0090_removed_clusters")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="salt",
            field=models.CharField(
                db_default="", default=functools.partial(secrets.token_hex, 32), editable=False, max_length=64
            ),
        ),
        migrations.AddField(model_name="auditentry", name="salt", field=models.BinaryField(null=True)),
        migrations.AlterField(
            model_name="content",
            name="salt",
            field=models.BinaryField(
                db_default=b"",
                default=b"",
                help_text="what the digest is keyed with; empty where it was stored before that",
            ),
        ),
        migrations.RunPython(mirror_settled_anew, migrations.RunPython.noop),
    ]
