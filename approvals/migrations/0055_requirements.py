"""Requests keep what their bundle asks of its cluster. Of older ones nobody knows it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0053_audit_time"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="requirements",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
