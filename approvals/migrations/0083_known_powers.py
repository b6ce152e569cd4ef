from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0082_history_by_name"),
    ]

    operations = [
        migrations.AddField(
            model_name="policy",
            name="allows_known_powers",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="whether a grant approves power over Pratique that people have approved of the deployment",
            ),
        ),
    ]
