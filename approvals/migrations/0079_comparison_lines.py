"""Comparisons keep the lines that differ. Those that were kept before have none: they are worked out again."""

from typing import Any

from django.db import migrations

import approvals.encryption.fields


def forget_done(apps: Any, schema_editor: Any) -> None:
    apps.get_model("approvals", "BundleComparison").objects.filter(state="done").delete()


class Migration(migrations.Migration):

    dependencies = [
        ("approvals", "0078_spec_values"),
    ]

    operations = [
        migrations.AddField(
            model_name="bundlecomparison",
            name="lines",
            field=approvals.encryption.fields.EncryptedJSONField(
                blank=True,
                bound_to=("key",),
                help_text="what differs in each object, by its position in the plan of the result",
                null=True,
                place="lines of comparison",
            ),
        ),
        migrations.RunPython(forget_done, migrations.RunPython.noop),
    ]
