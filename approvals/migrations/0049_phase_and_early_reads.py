"""The phase of an apply; and of what was read before read_unattended was kept, that nobody knows on whose word it was."""

from django.db import migrations, models

EARLIER = "?"


def mark(apps, schema_editor):
    """Only requests that were created automatically may have been read on the operator's word."""
    request = apps.get_model("approvals", "Request")
    rows = request.objects.filter(is_unattended=True, content__isnull=False, read_unattended=[])
    for row in rows.only("pk", "spec", "read_unattended").order_by("pk").iterator(chunk_size=500):
        if found := list(_read_of(row.spec)):
            request.objects.filter(pk=row.pk, read_unattended=[]).update(read_unattended=[EARLIER, *found])


def _read_of(spec):
    for source in spec.get("sources") or []:
        kind = source.get("kind", "")
        body = source.get(kind) or {}
        named = body if kind == "configMap" else (body.get("auth") or {}).get("secret")
        if named:
            place = named.get("namespace") or spec.get("installNamespace") or ""
            yield f"{'ConfigMap' if kind == 'configMap' else 'Secret'} {place}/{named.get('name', '')}"


def unmark(apps, schema_editor):
    request = apps.get_model("approvals", "Request")
    for row in request.objects.exclude(read_unattended=[]).only("pk", "read_unattended").iterator(chunk_size=500):
        if EARLIER in row.read_unattended:
            request.objects.filter(pk=row.pk).update(read_unattended=[])


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0048_list_indexes"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="phase",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="the phase of applying it, such as `2 of 5: crds`",
                max_length=63,
            ),
        ),
        migrations.RunPython(mark, unmark, elidable=True),
    ]
