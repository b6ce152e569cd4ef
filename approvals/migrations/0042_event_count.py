"""The columns that count events are named after them. Old processes do not know the new names: stop them first.

The rest changes help texts, and nothing in the database.
"""

import approvals.errors
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0040_known_writers"),
    ]

    operations = [
        migrations.RenameField("bundledeployment", "stirs", "event_count"),
        migrations.RenameField("bundledeployment", "stirs_observed", "events_observed"),
        migrations.AlterField(
            model_name="bundledeployment",
            name="drift_problem",
            field=models.TextField(blank=True, help_text="why drift could not be checked"),
        ),
        migrations.AlterField(
            model_name="bundledeployment",
            name="waiting_words",
            field=models.TextField(blank=True, help_text="why no request was created yet, and what to do"),
        ),
        migrations.AlterField(
            model_name="request",
            name="awaits",
            field=models.CharField(
                blank=True,
                choices=[
                    (approvals.errors.Awaits["ACCOUNT"], approvals.errors.Awaits["ACCOUNT"]),
                    (approvals.errors.Awaits["RIGHTS"], approvals.errors.Awaits["RIGHTS"]),
                ],
                help_text="what must change in the cluster before the next check",
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="request",
            name="is_unattended",
            field=models.BooleanField(
                default=False,
                help_text="created automatically: the people who last changed the spec are its requesters",
            ),
        ),
        migrations.AlterField(
            model_name="request",
            name="number",
            field=models.PositiveIntegerField(help_text="the number of the request within its deployment, from 1"),
        ),
        migrations.AlterField(
            model_name="request",
            name="remedy",
            field=models.TextField(
                blank=True, db_default="", help_text="what can be done about the problem, and by whom"
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="healthy_at",
            field=models.DateTimeField(blank=True, help_text="when it was first observed healthy", null=True),
        ),
        migrations.AlterField(
            model_name="revision",
            name="overdue_at",
            field=models.DateTimeField(
                blank=True, help_text="when it missed its deadline to become healthy", null=True
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="revoked_by",
            field=models.CharField(blank=True, help_text="user name on the cluster", max_length=253),
        ),
        migrations.AlterField(
            model_name="specwrite",
            name="groups_at",
            field=models.DateTimeField(blank=True, help_text="when the groups were verified; null: unknown", null=True),
        ),
        migrations.AlterField("request", "worked_seconds", models.FloatField(default=0.0, help_text="used of its deadline by applying it or restoring the previous revision")),
        migrations.AlterField("review", "may_use_account", models.BooleanField(default=False, help_text="may impersonate the installing ServiceAccount")),
        migrations.AlterField("review", "may_write", models.BooleanField(default=False, help_text="the requester is unknown, and this reviewer may have written the spec")),
        migrations.AlterField("signin", "proxy", models.CharField(blank=True, default="", help_text="the proxy that must name `proxy_subject`", max_length=63)),
    ]
