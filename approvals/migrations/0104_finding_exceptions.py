"""FindingExceptions: who confirmed them, and which findings of a request they accept."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("approvals", "0103_approval_policies"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="finding_exceptions",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="request",
            name="reminded_round",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name="Confirmation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=80)),
                ("person", models.JSONField(help_text="access.Person.record, as they were known on the cluster")),
                ("access_reason", models.TextField(help_text="in what words Kubernetes allowed it")),
                ("given_at", models.DateTimeField()),
                (
                    "object",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="confirmations",
                        to="approvals.decidingobject",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.AddConstraint(
            model_name="confirmation",
            constraint=models.UniqueConstraint(
                fields=("object", "digest", "user"), name="one_confirmation_per_person"
            ),
        ),
    ]
