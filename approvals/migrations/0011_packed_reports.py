"""Reports are kept packed; what 0012 takes away is copied here first."""

import json
import re

from django.db import migrations, models

from approvals.packed import PackedJSONField


# A backslash that is meant as one is matched first, so that the text of an escape is not taken for it.
ESCAPE = re.compile(r"\\\\|\\u0000")
SHOWN_NUL = r"\\x00"


def pack(apps, schema_editor):
    _copy(apps.get_model("approvals", "Report"), "body", "packed", lambda body: body)


def unpack(apps, schema_editor):
    can_hold_nul = schema_editor.connection.vendor != "postgresql"
    _copy(apps.get_model("approvals", "Report"), "packed", "body", lambda body: body if can_hold_nul else _shown(body))


def _copy(reports, source, target, made):
    """One by one: a single report may be as large as a bundle."""
    for pk in list(reports.objects.values_list("pk", flat=True)):
        report = reports.objects.only(source).get(pk=pk)
        setattr(report, target, made(getattr(report, source)))
        report.save(update_fields=[target])


def _shown(body):
    """Each NUL as the escape that pages show for it. What was planned with one is then another plan: a new round."""
    text = json.dumps(body)
    if r"\u0000" not in text:
        return body
    return json.loads(ESCAPE.sub(lambda found: found[0] if found[0] == r"\\" else SHOWN_NUL, text))


class Migration(migrations.Migration):
    dependencies = [("approvals", "0010_optional")]
    operations = [
        migrations.AlterField("report", "body", models.JSONField(null=True)),
        migrations.AddField("report", "packed", PackedJSONField(null=True)),
        migrations.RunPython(pack, unpack),
    ]
