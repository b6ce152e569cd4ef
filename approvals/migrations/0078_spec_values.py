from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("approvals", "0077_catalog_authors"),
    ]

    operations = [
        migrations.AddField(
            model_name="request",
            name="spec_values",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
