"""The order of a change set, and what it goes by: labels of clusters, and since when a deployment is healthy."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("approvals", "0105_external_checks"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="labels",
            field=models.JSONField(
                blank=True, db_default={}, default=dict, help_text="what operators say of it: rings go by these"
            ),
        ),
        migrations.AddField(
            model_name="bundledeployment",
            name="healthy_since",
            field=models.DateTimeField(
                blank=True, help_text="when it last became healthy; counts while it is", null=True
            ),
        ),
        migrations.AlterField(
            model_name="request",
            name="awaits",
            field=models.CharField(
                blank=True,
                choices=[("account", "account"), ("rights", "rights"), ("window", "window"), ("ring", "ring")],
                help_text="what must change in the cluster before the next check",
                max_length=10,
            ),
        ),
        migrations.CreateModel(
            name="Rollout",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=63)),
                ("rings", models.JSONField()),
                (
                    "on_failure",
                    models.CharField(
                        choices=[("Stop", "Stop"), ("PutBack", "PutBack")], default="Stop", max_length=10
                    ),
                ),
                ("made_by", models.CharField(max_length=253)),
                ("made_at", models.DateTimeField()),
                ("ended_by", models.CharField(blank=True, default="", max_length=253)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-made_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at__isnull", True)), fields=("name",), name="one_order_of_a_set"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("on_failure__in", ["PutBack", "Stop"])), name="rollout_on_failure_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RolloutMember",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ring", models.PositiveSmallIntegerField()),
                ("from_number", models.PositiveIntegerField()),
                (
                    "put_back_number",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="the request after which the revision before it was restored for the set",
                        null=True,
                    ),
                ),
                (
                    "kept_because",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="why the revision before was not restored where another member failed",
                        max_length=1000,
                    ),
                ),
                (
                    "deployment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="approvals.bundledeployment",
                    ),
                ),
                (
                    "rollout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="members", to="approvals.rollout"
                    ),
                ),
            ],
            options={
                "ordering": ["ring", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("rollout", "deployment"), name="rollout_member_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RingApproval",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("ring", models.PositiveSmallIntegerField()),
                ("seen", models.JSONField(default=dict)),
                ("username", models.CharField(max_length=253)),
                ("channel", models.CharField(max_length=20)),
                ("reason", models.CharField(blank=True, max_length=1000)),
                ("given_at", models.DateTimeField()),
                (
                    "rollout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ring_approvals",
                        to="approvals.rollout",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["given_at", "pk"]},
        ),
    ]
