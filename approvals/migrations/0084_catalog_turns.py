"""A catalog says since when it is being read: who waits and who is read is told from the rows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0083_authors"),
    ]

    operations = [
        migrations.AddField(
            model_name="catalog",
            name="reading_since",
            field=models.DateTimeField(
                blank=True,
                help_text="since when a worker looks at its source; null: it waits, or is not due",
                null=True,
            ),
        ),
    ]
