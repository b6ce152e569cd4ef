"""Clusters can be removed; requests and audit go on naming them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0087_turns_of_reviewers")]
    operations = [
        migrations.AddField(
            model_name="cluster", name="removed_at", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
