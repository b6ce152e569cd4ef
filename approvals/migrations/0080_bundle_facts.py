from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0079_comparison_lines"),
    ]

    operations = [
        migrations.AddField(
            model_name="catalogpresentation",
            name="facts",
            field=models.JSONField(db_default={}, default=dict, help_text="as packed_facts has them"),
        ),
        migrations.AddField(
            model_name="catalogedition",
            name="reading",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                help_text="the number of the rules by which it was read (READING); 0: before they had one",
            ),
        ),
    ]
