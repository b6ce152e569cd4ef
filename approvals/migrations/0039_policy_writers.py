"""Everybody who ever saved a policy: what stands is the work of all of them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0038_awaits")]
    operations = [
        migrations.AddField(
            "policy",
            "writers",
            models.JSONField(default=list, blank=True, help_text="the same of everybody who ever saved it"),
        ),
    ]
