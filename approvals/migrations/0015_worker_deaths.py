"""Workers that died are counted on the row that they worked on."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

CLAIMED = ("request", "bundledeployment")


def columns() -> dict[str, models.Field[Any, Any]]:
    return {
        "worker_deaths": models.PositiveIntegerField(default=0),
        "rests_until": models.DateTimeField(
            blank=True, help_text="nobody claims it before: it killed its workers", null=True
        ),
    }


class Migration(migrations.Migration):
    dependencies = [("approvals", "0014_stirs")]

    operations = [
        *(
            migrations.AddField(model_name=model, name=name, field=field)
            for model in CLAIMED
            for name, field in columns().items()
        ),
        migrations.AddField(
            model_name="cluster",
            name="watch_deaths",
            field=models.PositiveIntegerField(default=0, help_text="watchers that died since one saw everything"),
        ),
        migrations.AddField(
            model_name="cluster",
            name="watch_at",
            field=models.CharField(
                blank=True, help_text="the object that a careful watcher looks at", max_length=400
            ),
        ),
        migrations.AddField(
            model_name="cluster",
            name="watch_skips",
            field=models.JSONField(default=list, help_text="objects that killed their watchers, as they were then"),
        ),
        migrations.CreateModel(
            name="TaskClaim",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("claimed_by", models.CharField(blank=True, max_length=100)),
                ("claimed_until", models.DateTimeField(blank=True, null=True)),
                (
                    "is_woken",
                    models.BooleanField(default=False, help_text="a wake came while somebody held the claim"),
                ),
                *columns().items(),
                ("task", models.CharField(max_length=40)),
                ("key", models.PositiveBigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("task", "key"), name="one_claim_per_task_and_row"),
                ],
            },
        ),
    ]
