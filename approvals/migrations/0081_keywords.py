from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("approvals", "0080_bundle_facts"),
    ]

    operations = [
        migrations.AddField(
            model_name="catalogpackage",
            name="searched_keywords",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="its keywords in small letters, one a line"
            ),
        ),
    ]
