"""What version of a mirror is ours, so that the watch sees an edit. Blank where an older version wrote it: it is written anew."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0064_problem_since"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="mirrored_version",
            field=models.CharField(
                blank=True, db_default="", help_text="the mirror's resourceVersion after it was written last", max_length=63
            ),
        ),
    ]
