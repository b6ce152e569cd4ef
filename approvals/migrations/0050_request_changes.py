"""Reviews that request changes, and who dismissed them. SQLite makes the table of reviews anew, without its triggers."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

REVIEWS, DISMISSALS = "approvals_review", "approvals_dismissal"
DECISIONS = [("Approve", "Approve"), ("RequestChanges", "Request changes"), ("Deny", "Deny")]
CHANNELS = [(it, it.capitalize()) for it in ("browser", "rest", "chat", "webhook", "kubectl", "policy")]


def keep_append_only(apps, schema_editor):
    """Triggers of 0002: again on the remade table of reviews, and on the new one."""
    if schema_editor.connection.vendor == "sqlite":
        for table in (REVIEWS, DISMISSALS):
            for operation in ("UPDATE", "DELETE"):
                schema_editor.execute(
                    f"CREATE TRIGGER IF NOT EXISTS {table}_no_{operation.lower()} BEFORE {operation} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
                )
        return
    for operation, each in (("UPDATE", "ROW"), ("DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
        schema_editor.execute(
            f"CREATE TRIGGER {DISMISSALS}_no_{operation.lower()} BEFORE {operation} ON {DISMISSALS} "
            f"FOR EACH {each} EXECUTE FUNCTION approvals_refuse_change()"
        )


def let_go(apps, schema_editor):
    """What keep_append_only put on the table of dismissals, for tests that flush it."""
    vendor = schema_editor.connection.vendor
    for operation in ("update", "delete", *(("truncate",) if vendor == "postgresql" else ())):
        on = f" ON {DISMISSALS}" if vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER {DISMISSALS}_no_{operation}{on}")


def keep_old(apps, schema_editor):
    """Back: the table of reviews is made anew once more. What requests changes has no place there."""
    if schema_editor.connection.vendor == "sqlite":
        for operation in ("UPDATE", "DELETE"):
            schema_editor.execute(
                f"CREATE TRIGGER IF NOT EXISTS {REVIEWS}_no_{operation.lower()} BEFORE {operation} ON {REVIEWS} "
                f"BEGIN SELECT RAISE(ABORT, '{REVIEWS} is append-only'); END"
            )


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("approvals", "0049_phase_and_early_reads"),
    ]
    operations = [
        migrations.RunPython(migrations.RunPython.noop, keep_old),
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
        migrations.RunPython(keep_append_only, migrations.RunPython.noop),
    ]
