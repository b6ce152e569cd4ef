"""The words of the API server stand apart from ours, and those of older rows count as values of their objects."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

from provisioner.review.base.record import OLD_WORDS, upgraded

OLD_VERSION = 1


def keep_apart(apps: Any, _: Any) -> None:
    """Nobody can say any more which words of an older row were whose: none of them is shown to everybody."""
    model = apps.get_model
    reports = model("approvals", "Report")
    for pk in list(reports.objects.values_list("pk", flat=True)):
        report = reports.objects.get(pk=pk)
        if isinstance(report.body, dict) and report.body.get("version") == OLD_VERSION:
            report.body, report.headline = upgraded(report.body), [OLD_WORDS]
            report.save(update_fields=["body", "headline"])
            model("approvals", "Finding").objects.filter(report=report).update(message=OLD_WORDS)
    columns = (
        ("Request", "problem"),
        ("Revision", "message"),
        ("Outcome", "message"),
        ("Drift", "problem"),
        ("OptionalObject", "problem"),
    )
    for name, column in columns:
        model("approvals", name).objects.exclude(**{column: ""}).update(**{column: OLD_WORDS})
    # These are found anew within minutes.
    model("approvals", "InventoryItem").objects.update(health_message="")
    model("approvals", "BundleDeployment").objects.update(health_message="", drift_problem="", observed_at=None)
    # What stands in the cluster is written anew.
    model("approvals", "Request").objects.update(mirrored_at=None)


def leave(_: Any, __: Any) -> None:
    """Going back shows nothing that was taken away."""


class Migration(migrations.Migration):
    dependencies = [("approvals", "0017_quotas")]

    operations = [
        migrations.AddField(
            model_name="request", name="server_words", field=models.JSONField(blank=True, default=list)
        ),
        migrations.AddField(model_name="outcome", name="server_words", field=models.TextField(blank=True, default="")),
        migrations.AlterField(model_name="outcome", name="server_words", field=models.TextField(blank=True)),
        migrations.AddField(model_name="outcome", name="about", field=models.JSONField(blank=True, null=True)),
        migrations.AddField(
            model_name="inventoryitem", name="health_words", field=models.TextField(blank=True, default="")
        ),
        migrations.AlterField(model_name="inventoryitem", name="health_words", field=models.TextField(blank=True)),
        migrations.AddField(model_name="drift", name="server_words", field=models.TextField(blank=True, default="")),
        migrations.AlterField(model_name="drift", name="server_words", field=models.TextField(blank=True)),
        migrations.RunPython(keep_apart, leave),
    ]
