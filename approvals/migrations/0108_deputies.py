"""Whose deputy gave a review, and until when they were."""

from django.db import migrations, models

from approvals.migrations import _append_only


class Migration(migrations.Migration):
    dependencies = [("approvals", "0107_carry_over")]

    operations = [
        migrations.AddField(
            model_name="review",
            name="deputy_words",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="whose deputy they were then and until when, if they could decide by that",
                max_length=300,
            ),
        ),
        migrations.RunPython(_append_only.keep_append_only, migrations.RunPython.noop),
    ]
