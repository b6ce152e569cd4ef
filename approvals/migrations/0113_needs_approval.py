"""The round of a request of which it was told who is still needed."""

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
