from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("approvals", "0093_repeated_keys")]

    operations = [
        migrations.AddField(
            model_name="request",
            name="patches",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
    ]
