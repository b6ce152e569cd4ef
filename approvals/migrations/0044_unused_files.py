"""Requests keep which files of their sources the format did not use. Of older ones nobody knows it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0043_read_unattended"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="unused_files",
            field=models.JSONField(blank=True, db_default={}, default=dict),
        ),
    ]
