from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0074_followed_packages'),
    ]

    operations = [
        migrations.AddField(
            model_name='catalog',
            name='is_writer_proved',
            field=models.BooleanField(db_default=False, default=False, help_text='whether who wrote the source was found to be allowed to get what it names'),
        ),
    ]
