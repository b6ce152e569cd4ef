"""Of a write that nobody known has made: the name that the API server proved, and who else may have made it.

SQLite makes the table of reviews anew, without its triggers (0002), forwards and backwards.
"""

from django.db import migrations, models

from approvals.migrations._append_only import keep_append_only


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0082_history_by_name"),
    ]

    operations = [
        migrations.RunPython(migrations.RunPython.noop, keep_append_only),
        migrations.AddField(
            model_name="specwrite",
            name="proved_as",
            field=models.CharField(
                blank=True,
                default="",
                db_default="",
                help_text="the name that the API server has proved, where it says nothing about who asked: "
                "username is empty",
                max_length=253,
            ),
        ),
        migrations.AddField(
            model_name="request",
            name="possible_authors",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="review",
            name="doubt",
            field=models.TextField(
                blank=True, db_default="", help_text="why they may be: the right, and by whose name"
            ),
        ),
        migrations.AlterField(
            model_name="review",
            name="may_write",
            field=models.BooleanField(
                default=False,
                help_text="this reviewer may be who wrote the spec, or asked for it, under another name",
            ),
        ),
        migrations.RunPython(keep_append_only, migrations.RunPython.noop),
    ]
