"""Which references that may move are followed, what they were last, and how sources moved. Of older requests nobody knows it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0068_audit_verb"),
    ]

    operations = [
        migrations.CreateModel(
            name="SourceHost",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("host", models.CharField(max_length=300, unique=True)),
                ("polls", models.JSONField(default=list)),
            ],
        ),
        migrations.AddField(
            model_name="request",
            name="bundle_version",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
        migrations.AddField(
            model_name="request",
            name="source_moves",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.CreateModel(
            name="FloatingReference",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=80, unique=True)),
                ("kind", models.CharField(max_length=60)),
                ("host", models.CharField(max_length=300)),
                ("seen", models.CharField(blank=True, max_length=80)),
                ("etag", models.CharField(blank=True, max_length=510)),
                (
                    "looked_at",
                    models.DateTimeField(blank=True, help_text="when the last look that succeeded began", null=True),
                ),
                ("tried_at", models.DateTimeField(blank=True, null=True)),
                (
                    "look_at",
                    models.DateTimeField(
                        blank=True, help_text="when to look again; null: nobody follows it", null=True
                    ),
                ),
                (
                    "failures",
                    models.PositiveIntegerField(
                        default=0, help_text="looks that failed since the last one that succeeded"
                    ),
                ),
                ("problem_code", models.CharField(blank=True, max_length=60)),
                ("problem", models.TextField(blank=True)),
                ("problem_since", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)),
                        fields=["look_at"],
                        name="floating_reference_due",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ReferenceFollower",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField()),
                (
                    "name",
                    models.CharField(help_text="the reference as people read it, without credentials", max_length=2300),
                ),
                (
                    "interval_seconds",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="as spec.sources[].interval has it; null: the operator's default",
                        null=True,
                    ),
                ),
                ("answered", models.CharField(blank=True, max_length=80)),
                ("answer_at", models.DateTimeField(blank=True, null=True)),
                (
                    "problem",
                    models.TextField(
                        blank=True, help_text="why a look is not for this deployment: its requesters may not read"
                    ),
                ),
                ("problem_since", models.DateTimeField(blank=True, null=True)),
                (
                    "moved_at",
                    models.DateTimeField(
                        blank=True, help_text="since when it differs from what the latest request is about", null=True
                    ),
                ),
                (
                    "deployment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followed_references",
                        to="approvals.bundledeployment",
                    ),
                ),
                (
                    "reference",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followers",
                        to="approvals.floatingreference",
                    ),
                ),
            ],
            options={
                "ordering": ["position"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("answer_at__isnull", False)),
                        fields=["answer_at"],
                        name="reference_follower_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("deployment", "position"), name="one_follower_per_source")
                ],
            },
        ),
    ]
