"""The last round of which it was said that people have to decide it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('approvals', '0109_notifications'),
    ]

    operations = [
        migrations.AddField(
            model_name='request',
            name='asked_round',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
    ]
