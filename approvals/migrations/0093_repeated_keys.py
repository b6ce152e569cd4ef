"""The keys that were there twice in the files of a request's bundle."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0092_made_values")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="repeated_keys",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
