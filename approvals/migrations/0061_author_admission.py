"""Since when the policies that prove who wrote a BundleDeployment are in force on a cluster."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0060_retention")]

    operations = [
        migrations.CreateModel(
            name="AuthorAdmission",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("facts", models.TextField(blank=True)),
                ("since", models.DateTimeField(blank=True, null=True)),
                ("looked_at", models.DateTimeField()),
                ("problem", models.TextField(blank=True)),
                (
                    "sure_from",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="resourceVersion after which every write met the policies; null: not yet",
                        null=True,
                    ),
                ),
                (
                    "cluster",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="author_admission",
                        to="approvals.cluster",
                    ),
                ),
            ],
            options={"abstract": False},
        ),
    ]
