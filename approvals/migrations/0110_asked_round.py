"""The last round of which it was told who is needed, and events by all sets of labels."""

from django.db import migrations, models
from django.utils import timezone


def look_anew(apps, schema_editor):
    """What waits for people was told before there was this event. Deputies that nobody can read are to be deleted."""
    apps.get_model("approvals", "Request").objects.filter(state="in_review").update(asked_round=models.F("round"))
    objects = apps.get_model("approvals", "DecidingObject").objects
    unread = objects.filter(kind="Deputy", gone_at=None, show_at=None).exclude(problem="")
    unread.update(show_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [
        ('approvals', '0109_notifications'),
    ]

    operations = [
        migrations.AddField(
            model_name='request',
            name='asked_round',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name='outboxevent',
            name='labels',
            field=models.JSONField(default=list),
        ),
        migrations.RunPython(look_anew, migrations.RunPython.noop),
    ]
