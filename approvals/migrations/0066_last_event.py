"""What the last event of Kubernetes told of a request. Blank where an older version ran: it is told once more."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0065_mirrored_version"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="last_event",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="round, state and problem that the latest event in the cluster told",
                max_length=100,
            ),
        ),
    ]
