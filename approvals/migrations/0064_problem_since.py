"""Since when a request waits because of its problem. Null where it was written by a version that did not keep it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0061_author_admission"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="problem_since",
            field=models.DateTimeField(blank=True, help_text="since when it waits because of the problem", null=True),
        ),
    ]
