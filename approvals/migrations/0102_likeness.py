"""What tells whether requests of a change set are alike."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0101_break_glass")]

    operations = [
        migrations.AddField(
            model_name="report",
            name="likeness",
            field=models.JSONField(db_default={}, default=dict),
        ),
    ]
