"""A reviewer may decide again until the verdict: a review names the one that it replaces. SQLite makes the table anew for
this, without its triggers."""

import django.db.models.deletion
from django.db import migrations, models

from approvals.migrations._append_only import keep_append_only


class Migration(migrations.Migration):
    dependencies = [("approvals", "0035_remedy")]
    operations = [
        migrations.RunPython(migrations.RunPython.noop, keep_append_only),
        migrations.RemoveConstraint(model_name="review", name="one_review_per_reviewer_and_round"),
        migrations.AddField(
            "review",
            "replaces",
            models.OneToOneField(
                to="approvals.review",
                null=True,
                blank=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="replaced_by",
                help_text="the earlier review by the same reviewer, which no longer counts",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.UniqueConstraint(
                fields=("request", "round", "voter"),
                condition=models.Q(replaces=None),
                name="one_first_review_per_reviewer_and_round",
            ),
        ),
        migrations.RunPython(keep_append_only, migrations.RunPython.noop),
    ]
