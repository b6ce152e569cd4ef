"""Who can mend what a request waits for; and what is in review is looked at again, which nothing did before."""

from django.db import migrations, models
from django.db.models.functions import Now


def look_again(apps, schema_editor):
    waiting = apps.get_model("approvals", "Request").objects.filter(state="in_review", look_again_at=None)
    waiting.update(look_again_at=Now())


class Migration(migrations.Migration):
    dependencies = [("approvals", "0034_strays")]
    operations = [
        migrations.AddField(
            "request",
            "remedy",
            models.TextField(blank=True, db_default="", help_text="who can do what about the problem"),
        ),
        migrations.RunPython(look_again, migrations.RunPython.noop),
    ]
