"""What was read because the operator had listed the deployment is kept, so that it counts when that is withdrawn."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0042_event_count"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="read_unattended",
            field=models.JSONField(
                db_default=[],
                default=list,
                help_text="what its sources were read of because PRATIQUE_UNATTENDED_READS listed the deployment",
            ),
        ),
    ]
