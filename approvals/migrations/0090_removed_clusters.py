"""Clusters can be removed; requests and audit go on naming them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0089_possible_authors_of_open_requests")]
    operations = [
        migrations.AddField(
            model_name="cluster", name="removed_at", field=models.DateTimeField(blank=True, null=True)
        ),
    ]
