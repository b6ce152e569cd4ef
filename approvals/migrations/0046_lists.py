"""What lists filter and sort requests by: columns of their own, and tables beside them; and the last
check of the audit, which pages show."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def of_request(related_name: str) -> Any:
    return models.ForeignKey(
        on_delete=django.db.models.deletion.CASCADE, related_name=related_name, to="approvals.request"
    )


def key() -> Any:
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [("approvals", "0045_viewed_objects")]

    operations = [
        migrations.AddField(
            "request",
            "cluster",
            models.ForeignKey(
                "approvals.cluster",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
            ),
        ),
        migrations.AddField("request", "format", models.CharField(default="plain", max_length=60)),
        migrations.AddField(
            "request",
            "weight",
            models.PositiveSmallIntegerField(
                default=0, help_text="of the worst new finding: 6 for critical to 1 for safe, 0 without a report"
            ),
        ),
        migrations.CreateModel(
            name="RequestText",
            fields=[
                (
                    "request",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="searched",
                        serialize=False,
                        to="approvals.request",
                    ),
                ),
                ("text", models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name="RequestRule",
            fields=[
                ("id", key()),
                ("rule", models.CharField(max_length=20)),
                ("weight", models.PositiveSmallIntegerField()),
                ("request", of_request("rules")),
            ],
            options={
                "indexes": [models.Index(fields=["rule", "request"], name="rule_requests")],
                "constraints": [
                    models.UniqueConstraint(fields=("request", "rule"), name="one_row_per_request_and_rule")
                ],
            },
        ),
        migrations.CreateModel(
            name="RequestAsker",
            fields=[
                ("id", key()),
                ("username", models.CharField(max_length=253)),
                ("request", of_request("askers")),
            ],
            options={
                "indexes": [models.Index(fields=["username", "request"], name="asker_requests")],
                "constraints": [
                    models.UniqueConstraint(fields=("request", "username"), name="one_row_per_request_and_asker")
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditCheck",
            fields=[
                ("id", key()),
                ("length", models.PositiveBigIntegerField()),
                ("broken_at", models.PositiveBigIntegerField(blank=True, null=True)),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
