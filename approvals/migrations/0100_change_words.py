"""Why a change is made and its ticket, kept with its request."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0099_windows")]

    operations = [
        migrations.AddField(
            model_name="bundledeployment",
            name="change_words",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="request",
            name="change_reason",
            field=models.CharField(blank=True, db_default="", default="", max_length=1000),
        ),
        migrations.AddField(
            model_name="request",
            name="change_ticket",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
