"""Reports are kept packed; what 0012 takes away is copied here first."""

from django.db import migrations, models

from approvals.packed import PackedJSONField


def pack(apps, schema_editor):
    _copy(apps.get_model("approvals", "Report"), "body", "packed")


def unpack(apps, schema_editor):
    _copy(apps.get_model("approvals", "Report"), "packed", "body")


def _copy(reports, source, target):
    """One by one: a single report may be as large as a bundle."""
    for pk in list(reports.objects.values_list("pk", flat=True)):
        report = reports.objects.only(source).get(pk=pk)
        setattr(report, target, getattr(report, source))
        report.save(update_fields=[target])


class Migration(migrations.Migration):
    dependencies = [("approvals", "0010_optional")]
    operations = [
        migrations.AlterField("report", "body", models.JSONField(null=True)),
        migrations.AddField("report", "packed", PackedJSONField(null=True)),
        migrations.RunPython(pack, unpack),
    ]
