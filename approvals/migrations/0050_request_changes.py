"""Reviews that request changes, and who dismissed them. SQLite makes the table of reviews anew, without its triggers."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from approvals.migrations._append_only import freeze, keep_append_only

DISMISSALS = "approvals_dismissal"
DECISIONS = [("Approve", "Approve"), ("RequestChanges", "Request changes"), ("Deny", "Deny")]
CHANNELS = [(it, it.capitalize()) for it in ("browser", "rest", "chat", "webhook", "kubectl", "policy")]


def freeze_dismissals(apps, schema_editor):
    keep_append_only(apps, schema_editor)
    freeze(schema_editor, DISMISSALS)


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("approvals", "0049_phase_and_early_reads"),
    ]
    operations = [
        migrations.RunPython(migrations.RunPython.noop, keep_append_only),
        migrations.RemoveConstraint(model_name="review", name="review_decision_known"),
        migrations.AlterField("review", "decision", models.CharField(choices=DECISIONS, max_length=14)),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(decision__in=["Approve", "RequestChanges", "Deny"]), name="review_decision_known"
            ),
        ),
        migrations.CreateModel(
            name="Dismissal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("reason", models.TextField()),
                ("channel", models.CharField(choices=CHANNELS, max_length=10)),
                ("username", models.CharField(max_length=253)),
                ("uid", models.CharField(blank=True, max_length=253)),
                ("issuer", models.CharField(blank=True, default="", max_length=255)),
                ("subject", models.CharField(blank=True, default="", max_length=255)),
                (
                    "override_reason",
                    models.TextField(blank=True, help_text="the API server's words when it allowed this"),
                ),
                ("given_at", models.DateTimeField()),
                (
                    "review",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="dismissals", to="approvals.review"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["given_at", "pk"]},
        ),
        migrations.RunPython(freeze_dismissals, migrations.RunPython.noop),
    ]
