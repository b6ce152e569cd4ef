"""Indexes for the figures that are read at every scrape of the metrics."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0015_worker_deaths")]

    operations = [
        migrations.AddIndex(
            model_name="request", index=models.Index(fields=["settled_at"], name="request_settled")
        ),
        migrations.AddIndex(
            model_name="chatdelivery",
            index=models.Index(
                condition=models.Q(("done_at__isnull", True)), fields=["received_at"], name="delivery_open"
            ),
        ),
    ]
