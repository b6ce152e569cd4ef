"""The whole schema, made of the 81 migrations of the time before 0.1.0. What they did to rows is done where they ran.

A database that has the last of them has this one. One that stopped before it is refused, before anything is changed.
"""

import functools
import logging
import secrets
import uuid

import django.db.models.deletion
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, migrations, models, transaction
from django.db.migrations.recorder import MigrationRecorder

import approvals.encryption.fields
import approvals.json_packing
from approvals.migrations import _append_only

LAST_BEFORE, COMMIT = "0091_salts_of_digests", "9e385e5640f0"
EXTENSION = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
PLACE = "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'"
DROP = "DROP INDEX CONCURRENTLY IF EXISTS request_text_parts"
INDEX = "CREATE INDEX{how} request_text_parts ON approvals_requesttext USING gin (text {place}gin_trgm_ops)"
NO_INDEX = (
    "the search through names and headlines has no index, and takes longer the more requests there are: the extension "
    "pg_trgm could not be used: %s. To mend it, run these as an administrator of the database, at any time: %s; %s; %s;"
)
logger = logging.getLogger(__name__)


def refuse_older_database(apps, schema_editor):
    connection = schema_editor.connection
    if "approvals_cluster" not in connection.introspection.table_names():
        return
    applied = [name for app, name in MigrationRecorder(connection).applied_migrations() if app == "approvals"]
    raise CommandError(
        f"This database was last migrated by an older Pratique, to {max(applied, default='an unknown state')}, and this version "
        f"can only upgrade one that has {LAST_BEFORE}. The tables are as they were. Check out commit {COMMIT}, run "
        "`pratique-manage migrate` there, then run it again with this version (docs/operating/upgrading.md)."
    )


def index_parts_of_texts(apps, schema_editor):
    """An index by which PostgreSQL finds a part of a name or of a headline among many requests.

    It needs the extension pg_trgm, which comes with PostgreSQL and which an owner of the database may create. Where that
    is not possible, lists are searched without it, as on SQLite, and the log says what an administrator can run.
    """
    if schema_editor.connection.vendor != "postgresql":
        return
    try:
        with transaction.atomic(schema_editor.connection.alias), schema_editor.connection.cursor() as cursor:
            cursor.execute(EXTENSION)
            cursor.execute(PLACE)
            (schema,) = cursor.fetchone()
            cursor.execute(INDEX.format(how="", place=schema_editor.quote_name(schema) + "."))
    except DatabaseError as exc:
        error = " ".join(str(exc).split())
        index = INDEX.format(how=" CONCURRENTLY", place="")
        logger.warning(NO_INDEX, error, EXTENSION, DROP, index, extra={"error": error})


class Migration(migrations.Migration):

    initial = True
    # A database of before counts as migrated. This goes when there are none left.
    replaces = [("approvals", LAST_BEFORE)]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(refuse_older_database, migrations.RunPython.noop),
        migrations.CreateModel(
            name='AuditCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('length', models.PositiveBigIntegerField()),
                ('broken_at', models.PositiveBigIntegerField(blank=True, null=True)),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField(unique=True)),
                ('at', models.DateTimeField()),
                ('verb', models.CharField(max_length=40)),
                ('actor', models.CharField(max_length=300)),
                ('via', models.CharField(max_length=20)),
                ('cluster', models.CharField(blank=True, max_length=63)),
                ('deployment', models.CharField(blank=True, max_length=253)),
                ('deployment_uid', models.CharField(blank=True, max_length=63)),
                ('request_uid', models.CharField(blank=True, max_length=63)),
                ('facts', models.JSONField(default=dict)),
                ('salt', models.BinaryField(null=True)),
                ('previous_hash', models.CharField(blank=True, max_length=64)),
                ('hash', models.CharField(max_length=64, unique=True)),
            ],
            options={
                'ordering': ['-number'],
                'indexes': [
                    models.Index(fields=['deployment_uid', '-number'], name='audit_deployment'),
                    models.Index(fields=['request_uid', '-number'], name='audit_request'),
                    models.Index(fields=['cluster', '-number'], name='audit_cluster'),
                    models.Index(fields=['actor', '-number'], name='audit_actor'),
                    models.Index(fields=['deployment', '-number'], name='audit_name'),
                    models.Index(fields=['via', '-number'], name='audit_via'),
                    models.Index(fields=['verb', '-number'], name='audit_verb'),
                    models.Index(fields=['at', 'number'], name='audit_time'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ChatDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('tool', models.CharField(max_length=30)),
                ('key', models.CharField(max_length=128)),
                ('wish', approvals.encryption.fields.EncryptedJSONField(bound_to=('tool', 'key'), place='wish of delivery')),
                ('received_at', models.DateTimeField()),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('words', models.TextField(blank=True)),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('done_at__isnull', True)), fields=['received_at'], name='delivery_open'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('tool', 'key'), name='delivery_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Cluster',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=63, unique=True)),
                ('uid', models.CharField(blank=True, max_length=63, null=True, unique=True)),
                ('kubeconfig', approvals.encryption.fields.EncryptedTextField(bound_to=('name',), help_text='server, CA and inline credentials; empty: in-cluster', place='kubeconfig of cluster')),
                ('version', models.CharField(blank=True, max_length=60)),
                ('reached_at', models.DateTimeField(blank=True, null=True)),
                ('problem', models.TextField(blank=True, help_text='as the watch knows it')),
                ('refusal', models.TextField(blank=True, help_text='as any process met it (approvals.refusals); counts for minutes')),
                ('refused_by', models.CharField(blank=True, max_length=100)),
                ('refused_at', models.DateTimeField(blank=True, null=True)),
                ('credentials_end', models.DateTimeField(blank=True, help_text='of those it is registered with', null=True)),
                ('watched_by', models.CharField(blank=True, max_length=100)),
                ('watched_until', models.DateTimeField(blank=True, null=True)),
                ('watch_deaths', models.PositiveIntegerField(default=0, help_text='watchers that died since one saw everything')),
                ('watch_at', models.CharField(blank=True, help_text='the object that a careful watcher looks at', max_length=400)),
                ('watch_skips', models.JSONField(default=list, help_text='objects that killed their watchers, as they were then')),
                ('created_at', models.DateTimeField()),
                ('removed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Content',
            fields=[
                ('digest', models.CharField(max_length=80, primary_key=True, serialize=False)),
                ('install_namespace', models.CharField(max_length=63)),
                ('service_account', models.CharField(max_length=253)),
                ('salt', models.BinaryField(db_default=b'', default=b'', help_text='what the digest is keyed with; empty where it was stored before that')),
                ('format', models.CharField(max_length=60)),
                ('object_count', models.PositiveIntegerField()),
                ('byte_count', models.PositiveBigIntegerField()),
                ('has_deletion_hooks', models.BooleanField(db_default=False, default=False, help_text='whether hooks of it run when its deployment is deleted')),
                ('created_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(help_text='when it was last stored: what is about to get its request stays', null=True)),
                ('removed_at', models.DateTimeField(blank=True, help_text='when its bytes went from the content store (PRATIQUE_KEEP_DAYS)', null=True)),
                ('deleting_until', models.DateTimeField(blank=True, help_text='until when a deletion of its bytes that was asked for may still happen', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='FloatingReference',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=80, unique=True)),
                ('kind', models.CharField(max_length=60)),
                ('host', models.CharField(max_length=300)),
                ('seen', models.CharField(blank=True, max_length=80)),
                ('etag', models.CharField(blank=True, max_length=510)),
                ('looked_at', models.DateTimeField(blank=True, help_text='when the last look that succeeded began', null=True)),
                ('tried_at', models.DateTimeField(blank=True, null=True)),
                ('look_at', models.DateTimeField(blank=True, help_text='when to look again; null: nobody follows it', null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='looks that failed since the last one that succeeded')),
                ('problem_code', models.CharField(blank=True, max_length=60)),
                ('problem', models.TextField(blank=True)),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
                ('rests_until', models.DateTimeField(blank=True, help_text='until when its server does not want to be asked (Retry-After)', null=True)),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='floating_reference_due'),
                ],
            },
        ),
        migrations.CreateModel(
            name='IssuerGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.UUIDField(unique=True)),
                ('issuer', models.CharField(max_length=255)),
                ('subject', models.CharField(max_length=255)),
                ('session', models.CharField(blank=True, max_length=255)),
                ('refresh_token', approvals.encryption.fields.EncryptedTextField(blank=True, bound_to=('uid',), place='refresh token of grant')),
                ('id_token', approvals.encryption.fields.EncryptedTextField(blank=True, bound_to=('uid',), place='ID token of grant')),
                ('renewed_at', models.DateTimeField(help_text='when the issuer last said who this is')),
                ('tried_at', models.DateTimeField(help_text='when it was last asked')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['issuer', 'subject'], name='approvals_i_issuer_3fd64a_idx'),
                    models.Index(fields=['issuer', 'session'], name='approvals_i_issuer_fe0ec9_idx'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LinkCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('tool', models.CharField(max_length=30)),
                ('tenant', models.CharField(max_length=100)),
                ('account', models.CharField(max_length=100)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='NewsRead',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('number', models.PositiveBigIntegerField(default=0)),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(blank=True, max_length=1000)),
                ('at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('user', 'name'), name='one_saved_view_of_a_name'),
                ],
            },
        ),
        migrations.CreateModel(
            name='SourceHost',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=300, unique=True)),
                ('polls', models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name='TaskClaim',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('claimed_by', models.CharField(blank=True, max_length=100)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('is_woken', models.BooleanField(default=False, help_text='a wake came while somebody held the claim')),
                ('worker_deaths', models.PositiveIntegerField(default=0)),
                ('rests_until', models.DateTimeField(blank=True, help_text='nobody claims it before: it killed its workers', null=True)),
                ('task', models.CharField(max_length=40)),
                ('key', models.PositiveBigIntegerField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('task', 'key'), name='one_claim_per_task_and_row'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                ('name', models.CharField(max_length=100)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('scopes', models.JSONField(default=list)),
                ('clusters', models.JSONField(default=list)),
                ('password_at', models.DateTimeField(blank=True, help_text='as of the session that made it', null=True)),
                ('grant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='approvals.issuergrant')),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('ended_because', models.CharField(blank=True, help_text='"" while it has not ended early', max_length=300)),
            ],
        ),
        migrations.CreateModel(
            name='AuthorAdmission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('facts', models.TextField(blank=True)),
                ('since', models.DateTimeField(blank=True, null=True)),
                ('looked_at', models.DateTimeField()),
                ('problem', models.TextField(blank=True)),
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='author_admission', to='approvals.cluster')),
                ('sure_from', models.PositiveBigIntegerField(blank=True, help_text='resourceVersion after which every write met the policies; null: not yet', null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='BundleComparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=80, unique=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.cluster')),
                ('wish', models.JSONField(help_text='what is compared, and how it is rendered')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('position', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=10)),
                ('progress', models.CharField(blank=True, help_text='what is being done, in words', max_length=300)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('asked_at', models.DateTimeField()),
                ('look_again_at', models.DateTimeField(blank=True, help_text='not to be worked on before; null: at once', null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('expires_at', models.DateTimeField(blank=True, help_text='until when the result is shown', null=True)),
                ('problem_code', models.CharField(blank=True, max_length=60)),
                ('problem', models.TextField(blank=True)),
                ('result', approvals.encryption.fields.EncryptedJSONField(blank=True, bound_to=('key',), null=True, place='result of comparison')),
                ('lines', approvals.encryption.fields.EncryptedJSONField(blank=True, bound_to=('key',), help_text='what differs in each object, by its position in the plan of the result', null=True, place='lines of comparison')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('state', 'waiting')), fields=['asked_at'], name='comparison_waiting'),
                    models.Index(fields=['expires_at'], name='comparison_expired'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('user', 'position'), name='one_comparison_per_position'),
                    models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('state', 'waiting')), models.Q(('ended_at__isnull', False), ('expires_at__isnull', False), ('position__isnull', True)), _connector='OR'), name='comparison_waits_or_ended'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CatalogHistory',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.cluster')),
                ('catalog_name', models.CharField(max_length=253)),
                ('package', models.CharField(max_length=253)),
                ('bundles', approvals.json_packing.PackedJSONField()),
                ('change_count', models.PositiveIntegerField(default=0)),
                ('gone_at', models.DateTimeField(blank=True, help_text='since when there is no Catalog of this name', null=True)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('cluster', 'catalog_name', 'package'), name='history_once_per_package'),
                ],
            },
        ),
        migrations.CreateModel(
            name='KubernetesIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='kubernetes_identities', to=settings.AUTH_USER_MODEL)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='identities', to='approvals.cluster')),
                ('authenticator', models.CharField(choices=[('token-review', 'Kubernetes token'), ('mapped', 'mapped by the operator'), ('oidc', 'OpenID Connect'), ('proxy', 'trusted proxy')], max_length=20)),
                ('issuer', models.CharField(blank=True, default='', help_text='"" where the cluster itself vouches', max_length=255)),
                ('subject', models.CharField(blank=True, default='', help_text='`sub` of the issuer, or of a proxy', max_length=255)),
                ('username', models.CharField(max_length=253)),
                ('uid', models.CharField(blank=True, max_length=253)),
                ('groups', models.JSONField(default=list)),
                ('groups_seen_at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('user', 'cluster'), name='identity_once_per_user_and_cluster'),
                    models.UniqueConstraint(fields=('cluster', 'authenticator', 'issuer', 'subject', 'username', 'uid'), name='identity_is_one_person'),
                ],
            },
        ),
        migrations.CreateModel(
            name='OwnWrite',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.cluster')),
                ('name', models.CharField(max_length=253)),
                ('started_at', models.DateTimeField()),
            ],
            options={
                'indexes': [
                    models.Index(fields=['cluster', 'name'], name='own_write_of_name'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=63, unique=True)),
                ('kind', models.CharField(choices=[('guard', 'Guard'), ('grant', 'Grant')], max_length=5)),
                ('mode', models.CharField(choices=[('enforce', 'Enforce'), ('dry-run', 'Dry Run')], default='dry-run', max_length=7)),
                ('cluster', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.cluster')),
                ('names', models.JSONField(default=list)),
                ('labels', models.JSONField(default=dict)),
                ('expression', models.TextField()),
                ('message', models.TextField(blank=True)),
                ('allows_known_powers', models.BooleanField(db_default=False, default=False, help_text='whether a grant approves power over Pratique that people have approved of the deployment')),
                ('version', models.PositiveIntegerField(default=1)),
                ('is_active', models.BooleanField(default=True)),
                ('author', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('editor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('author_known_as', models.JSONField(blank=True, default=dict)),
                ('editor_known_as', models.JSONField(blank=True, default=dict)),
                ('writers', models.JSONField(blank=True, default=list, help_text='the same of everybody who ever saved it')),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'policies',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='ReviewAdmission',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('facts', models.TextField(blank=True)),
                ('since', models.DateTimeField(blank=True, null=True)),
                ('looked_at', models.DateTimeField()),
                ('problem', models.TextField(blank=True)),
                ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='review_admission', to='approvals.cluster')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='SignIn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sign_ins', to=settings.AUTH_USER_MODEL)),
                ('began_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField()),
                ('address', models.CharField(blank=True, max_length=64)),
                ('agent', models.CharField(blank=True, help_text="the browser's User-Agent", max_length=300)),
                ('password_at', models.DateTimeField(blank=True, help_text="when the local account's password was given", null=True)),
                ('grant', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='approvals.issuergrant')),
                ('proxy', models.CharField(blank=True, default='', help_text='the proxy that must name `proxy_subject`', max_length=63)),
                ('proxy_subject', models.CharField(blank=True, default='', max_length=255)),
            ],
        ),
        migrations.CreateModel(
            name='ChatAccount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chat_accounts', to=settings.AUTH_USER_MODEL)),
                ('tool', models.CharField(max_length=30)),
                ('tenant', models.CharField(max_length=100)),
                ('account', models.CharField(max_length=100)),
                ('name', models.CharField(blank=True, max_length=100)),
                ('linked_at', models.DateTimeField()),
                ('identities', models.ManyToManyField(blank=True, related_name='chat_accounts', to='approvals.kubernetesidentity')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('tool', 'tenant', 'account'), name='chat_account_linked_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Proof',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sign_in', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='proofs', to='approvals.signin')),
                ('api_token', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='proofs', to='approvals.apitoken')),
                ('identity', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='proofs', to='approvals.kubernetesidentity')),
                ('groups', models.JSONField(default=list)),
                ('proved_at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('api_token__isnull', True), ('sign_in__isnull', False)), models.Q(('api_token__isnull', False), ('sign_in__isnull', True)), _connector='OR'), name='proof_has_one_holder'),
                    models.UniqueConstraint(fields=('sign_in', 'identity'), name='proof_once_per_sign_in'),
                    models.UniqueConstraint(fields=('api_token', 'identity'), name='proof_once_per_token'),
                ],
            },
        ),
        migrations.CreateModel(
            name='BundleDeployment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('claimed_by', models.CharField(blank=True, max_length=100)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('is_woken', models.BooleanField(default=False, help_text='a wake came while somebody held the claim')),
                ('worker_deaths', models.PositiveIntegerField(default=0)),
                ('rests_until', models.DateTimeField(blank=True, help_text='nobody claims it before: it killed its workers', null=True)),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='deployments', to='approvals.cluster')),
                ('uid', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('generation', models.PositiveBigIntegerField()),
                ('resource_version', models.CharField(max_length=63)),
                ('spec', models.JSONField()),
                ('labels', models.JSONField(default=dict)),
                ('options_digest', models.CharField(max_length=80)),
                ('asked_again', models.CharField(blank=True, help_text="the annotation's value when it was last seen", max_length=100)),
                ('asked_rollback', models.CharField(blank=True, help_text='as asked_again, of the rollback', max_length=100)),
                ('is_paused', models.BooleanField(default=False)),
                ('paused_generation', models.PositiveBigIntegerField(blank=True, help_text='the generation that paused it; its write says by whom', null=True)),
                ('pause_reason', models.CharField(blank=True, max_length=1000)),
                ('problem', models.TextField(blank=True)),
                ('health', models.CharField(blank=True, max_length=20)),
                ('health_message', models.TextField(blank=True)),
                ('seen_at', models.DateTimeField()),
                ('looked_after_at', models.DateTimeField(blank=True, null=True)),
                ('event_count', models.PositiveBigIntegerField(default=0)),
                ('events_observed', models.PositiveBigIntegerField(blank=True, null=True)),
                ('observed_at', models.DateTimeField(blank=True, null=True)),
                ('deletion_requested_at', models.DateTimeField(blank=True, null=True)),
                ('gone_at', models.DateTimeField(blank=True, null=True)),
                ('drift_problem', models.TextField(blank=True, help_text='why drift could not be checked')),
                ('waiting', models.JSONField(blank=True, null=True)),
                ('waiting_since', models.DateTimeField(blank=True, null=True)),
                ('waiting_words', models.TextField(blank=True, help_text='why no request was created yet, and what to do')),
            ],
            options={
                'ordering': ['name'],
                'indexes': [
                    models.Index(condition=models.Q(('waiting_since__isnull', False)), fields=['waiting_since'], name='deployment_waiting'),
                    models.Index(fields=['name', 'id'], name='deployment_by_name'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('cluster', 'uid'), name='deployment_uid_once_per_cluster'),
                    models.UniqueConstraint(condition=models.Q(('gone_at__isnull', True)), fields=('cluster', 'name'), name='deployment_name_once_per_cluster'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ReferenceFollower',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followed_references', to='approvals.bundledeployment')),
                ('reference', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followers', to='approvals.floatingreference')),
                ('position', models.PositiveIntegerField()),
                ('name', models.CharField(help_text='the reference as people read it, without credentials', max_length=2300)),
                ('interval_seconds', models.PositiveIntegerField(blank=True, help_text="as spec.sources[].interval has it; null: the operator's default", null=True)),
                ('answered', models.CharField(blank=True, max_length=80)),
                ('answer_at', models.DateTimeField(blank=True, null=True)),
                ('problem', models.TextField(blank=True, help_text='why a look is not for this deployment: its requesters may not read')),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
                ('moved_at', models.DateTimeField(blank=True, help_text='since when it differs from what the latest request is about', null=True)),
                ('rests_until', models.DateTimeField(blank=True, help_text='it moved too often: until when no further request is made because of it', null=True)),
            ],
            options={
                'ordering': ['position'],
                'indexes': [
                    models.Index(condition=models.Q(('answer_at__isnull', False)), fields=['answer_at'], name='reference_follower_due'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'position'), name='one_follower_per_source'),
                ],
            },
        ),
        migrations.CreateModel(
            name='SpecWrite',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='writes', to='approvals.bundledeployment')),
                ('generation', models.PositiveBigIntegerField()),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('username', models.CharField(blank=True, max_length=253)),
                ('uid', models.CharField(blank=True, max_length=253)),
                ('groups', models.JSONField(default=list)),
                ('groups_at', models.DateTimeField(blank=True, help_text='when the groups were verified; null: unknown', null=True)),
                ('issuer', models.CharField(blank=True, default='', max_length=255)),
                ('subject', models.CharField(blank=True, default='', max_length=255)),
                ('via', models.CharField(max_length=20)),
                ('proved_as', models.CharField(blank=True, db_default='', default='', help_text='the name that the API server has proved, where it says nothing about who asked: username is empty', max_length=253)),
                ('seen_at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'generation'), name='write_once_per_generation'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Catalog',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='catalogs', to='approvals.cluster')),
                ('uid', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('generation', models.PositiveBigIntegerField()),
                ('resource_version', models.CharField(max_length=63)),
                ('spec', models.JSONField()),
                ('authors', models.JSONField(default=list, help_text='who wrote which part of the source, as requesters are kept; empty: not known')),
                ('is_writer_proved', models.BooleanField(db_default=False, default=False, help_text='whether all who wrote the source were found to be allowed to get what it names')),
                ('status', models.JSONField(default=dict, help_text='what the cluster was told last')),
                ('seen_at', models.DateTimeField()),
                ('etag', models.CharField(blank=True, max_length=510)),
                ('looked_at', models.DateTimeField(blank=True, help_text='when the last look that succeeded began', null=True)),
                ('tried_at', models.DateTimeField(blank=True, null=True)),
                ('look_at', models.DateTimeField(blank=True, help_text='when to look again; null: never', null=True)),
                ('reading_since', models.DateTimeField(blank=True, help_text='since when a worker looks at its source; null: it waits, or is not due', null=True)),
                ('show_at', models.DateTimeField(blank=True, help_text='since when the cluster is to be told; null: it was', null=True)),
                ('failures', models.PositiveIntegerField(default=0, help_text='looks that failed since the last one that succeeded')),
                ('problem_code', models.CharField(blank=True, max_length=60)),
                ('problem', models.TextField(blank=True)),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['name'],
                'indexes': [
                    models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='catalog_due'),
                    models.Index(condition=models.Q(('show_at__isnull', False)), fields=['show_at'], name='catalog_to_show'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('cluster', 'name'), name='catalog_name_once_per_cluster'),
                    models.UniqueConstraint(fields=('cluster', 'uid'), name='catalog_uid_once_per_cluster'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CatalogEdition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('catalog', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='editions', to='approvals.catalog')),
                ('digest', models.CharField(max_length=80)),
                ('reading', models.PositiveIntegerField(db_default=0, default=0, help_text='the number of the rules by which it was read (READING); 0: before they had one')),
                ('began_at', models.DateTimeField()),
                ('read_at', models.DateTimeField(blank=True, null=True)),
                ('package_count', models.PositiveIntegerField(default=0)),
                ('channel_count', models.PositiveIntegerField(default=0)),
                ('bundle_count', models.PositiveIntegerField(default=0)),
                ('problem_count', models.PositiveIntegerField(default=0)),
                ('problems', approvals.json_packing.PackedJSONField(default=list, help_text='where and words of each')),
            ],
        ),
        migrations.CreateModel(
            name='CatalogPackage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('edition', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='packages', to='approvals.catalogedition')),
                ('name', models.CharField(max_length=253)),
                ('display_name', models.CharField(blank=True, max_length=253)),
                ('summary', models.CharField(blank=True, max_length=1000)),
                ('provider', models.CharField(blank=True, max_length=253)),
                ('default_channel', models.CharField(blank=True, max_length=253)),
                ('head', models.CharField(blank=True, help_text='the bundle in which the default channel ends', max_length=253)),
                ('head_version', models.CharField(blank=True, max_length=500)),
                ('channel_count', models.PositiveIntegerField()),
                ('bundle_count', models.PositiveIntegerField()),
                ('is_deprecated', models.BooleanField()),
                ('searched_text', models.TextField(help_text='in which a search looks, in small letters')),
                ('searched_keywords', models.TextField(blank=True, db_default='', default='', help_text='its keywords in small letters, one a line')),
                ('document', approvals.json_packing.PackedJSONField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('edition', 'name'), name='package_once_per_edition'),
                ],
            },
        ),
        migrations.CreateModel(
            name='CatalogPresentation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('package', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='presentation', to='approvals.catalogpackage')),
                ('description', models.TextField(blank=True)),
                ('icon', models.BinaryField(default=bytes)),
                ('icon_type', models.CharField(blank=True, max_length=40)),
                ('no_icon', models.CharField(blank=True, help_text='why the icon that it brings is not kept', max_length=500)),
                ('facts', models.JSONField(db_default={}, default=dict, help_text='as packed_facts has them')),
            ],
        ),
        migrations.CreateModel(
            name='FollowedPackage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='followed_packages', to='approvals.bundledeployment')),
                ('position', models.PositiveIntegerField()),
                ('catalog', models.CharField(max_length=253)),
                ('package', models.CharField(max_length=253)),
                ('digest', models.CharField(blank=True, max_length=80)),
                ('available', models.CharField(blank=True, max_length=253)),
                ('available_version', models.CharField(blank=True, max_length=500)),
                ('since', models.DateTimeField(blank=True, help_text='since when that is available', null=True)),
                ('reason', models.CharField(blank=True, help_text='why_not as one word for programs', max_length=20)),
                ('why_not', models.TextField(blank=True)),
                ('beyond', models.TextField(blank=True, help_text='what is newer and cannot be taken, and why')),
                ('answer_at', models.DateTimeField(blank=True, null=True)),
                ('looked_at', models.DateTimeField(blank=True, null=True)),
                ('problem', models.TextField(blank=True, help_text='why nobody can tell what the catalog offers here')),
                ('problem_since', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'ordering': ['position'],
                'indexes': [
                    models.Index(fields=['catalog'], name='followed_package_catalog'),
                    models.Index(condition=models.Q(('answer_at__isnull', False)), fields=['answer_at'], name='followed_package_due'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'position'), name='one_package_per_source'),
                ],
            },
        ),
        migrations.CreateModel(
            name='HookRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='hook_runs', to='approvals.bundledeployment')),
                ('group', models.CharField(blank=True, max_length=253)),
                ('version', models.CharField(max_length=63)),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(blank=True, max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('moment', models.CharField(max_length=20)),
                ('nonce', models.CharField(max_length=63)),
                ('uid', models.CharField(blank=True, max_length=63)),
                ('has_succeeded', models.BooleanField(default=False)),
            ],
            options={
                'ordering': ['kind', 'namespace', 'name'],
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'group', 'kind', 'namespace', 'name'), name='hook_once_per_deployment'),
                ],
            },
        ),
        migrations.CreateModel(
            name='InventoryItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='inventory', to='approvals.bundledeployment')),
                ('group', models.CharField(blank=True, max_length=253)),
                ('version', models.CharField(max_length=63)),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(blank=True, max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('nonce', models.CharField(max_length=63)),
                ('uid', models.CharField(blank=True, max_length=63)),
                ('health', models.CharField(blank=True, max_length=20)),
                ('health_message', models.TextField(blank=True)),
                ('health_words', models.TextField(blank=True)),
                ('fingerprint', models.CharField(blank=True, help_text='as it was last compared: cluster.drift', max_length=64)),
                ('look_at', models.DateTimeField(blank=True, help_text='when to compare it again; null: nothing happened', null=True)),
            ],
            options={
                'ordering': ['kind', 'namespace', 'name'],
                'indexes': [
                    models.Index(condition=models.Q(('look_at__isnull', False)), fields=['look_at'], name='inventory_due'),
                    models.Index(fields=['group', 'kind'], name='inventory_kind'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'group', 'kind', 'namespace', 'name'), name='object_once_per_deployment'),
                ],
            },
        ),
        migrations.CreateModel(
            name='KubectlReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='kubectl_reviews', to='approvals.cluster')),
                ('uid', models.CharField(max_length=63)),
                ('name', models.CharField(max_length=253)),
                ('created_at', models.DateTimeField(help_text='creationTimestamp of the object')),
                ('seen_at', models.DateTimeField()),
                ('username', models.CharField(blank=True, max_length=253)),
                ('reviewer', models.CharField(blank=True, help_text='who made it, as the object says, for turns alone; empty: unread', max_length=253)),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('code', models.CharField(blank=True, max_length=60)),
                ('words', models.TextField(blank=True)),
                ('finished_at', models.DateTimeField(blank=True, help_text='when its status was written', null=True)),
            ],
            options={
                'ordering': ['created_at', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='Stray',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='strays', to='approvals.bundledeployment')),
                ('group', models.CharField(blank=True, max_length=253)),
                ('version', models.CharField(max_length=63)),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(blank=True, max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('nonce', models.CharField(max_length=63, unique=True)),
                ('begun_at', models.DateTimeField()),
                ('look_at', models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='Request',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('claimed_by', models.CharField(blank=True, max_length=100)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('is_woken', models.BooleanField(default=False, help_text='a wake came while somebody held the claim')),
                ('worker_deaths', models.PositiveIntegerField(default=0)),
                ('rests_until', models.DateTimeField(blank=True, help_text='nobody claims it before: it killed its workers', null=True)),
                ('uid', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='approvals.bundledeployment')),
                ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.cluster')),
                ('format', models.CharField(default='plain', max_length=60)),
                ('weight', models.PositiveSmallIntegerField(default=0, help_text='of the worst new finding: 6 for critical to 1 for safe, 0 without a report')),
                ('number', models.PositiveIntegerField(help_text='the number of the request within its deployment, from 1')),
                ('purpose', models.CharField(choices=[('deploy', 'Deploy'), ('delete', 'Delete'), ('rollback', 'Rollback')], default='deploy', max_length=10)),
                ('generation', models.PositiveBigIntegerField()),
                ('spec', models.JSONField()),
                ('labels', models.JSONField(default=dict)),
                ('earlier_labels', models.JSONField(default=list)),
                ('options_digest', models.CharField(max_length=80)),
                ('salt', models.CharField(db_default='', default=functools.partial(secrets.token_hex, 32), editable=False, max_length=64)),
                ('requesters', models.JSONField(default=list)),
                ('is_requester_known', models.BooleanField(default=False)),
                ('possible_authors', models.JSONField(blank=True, db_default=[], default=list)),
                ('is_unattended', models.BooleanField(default=False, help_text='created automatically: the people who last changed the spec are its requesters')),
                ('read_unattended', models.JSONField(db_default=[], default=list, help_text='what its sources were read of because PRATIQUE_UNATTENDED_READS listed the deployment')),
                ('is_installer_proved', models.BooleanField(default=False)),
                ('content', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='requests', to='approvals.content')),
                ('pins', models.JSONField(default=list)),
                ('unused_files', models.JSONField(blank=True, db_default={}, default=dict)),
                ('requirements', models.JSONField(blank=True, db_default=[], default=list)),
                ('chart_values', models.JSONField(blank=True, null=True)),
                ('spec_values', models.JSONField(blank=True, db_default=[], default=list)),
                ('bundle_version', models.CharField(blank=True, db_default='', max_length=100)),
                ('source_moves', models.JSONField(blank=True, db_default=[], default=list)),
                ('lookups', models.JSONField(blank=True, db_default=[], default=list)),
                ('bundles', models.JSONField(blank=True, db_default=[], default=list)),
                ('is_for_people', models.BooleanField(db_default=False, default=False, help_text='grants do not approve it: it follows a catalog by upgradePolicy Request')),
                ('service_account_uid', models.CharField(blank=True, max_length=63)),
                ('state', models.CharField(choices=[('preparing', 'preparing'), ('in_review', 'in_review'), ('approved', 'approved'), ('denied', 'denied'), ('applying', 'applying'), ('applied', 'applied'), ('restoring', 'restoring'), ('failed', 'failed'), ('superseded', 'superseded'), ('expired', 'expired'), ('withdrawn', 'withdrawn'), ('stale', 'stale')], default='preparing', max_length=12)),
                ('round', models.PositiveIntegerField(default=1)),
                ('plan_digest', models.CharField(blank=True, max_length=80)),
                ('subject_digest', models.CharField(blank=True, max_length=80)),
                ('problem_code', models.CharField(blank=True, max_length=60)),
                ('problem', models.TextField(blank=True)),
                ('remedy', models.TextField(blank=True, db_default='', help_text='what can be done about the problem, and by whom')),
                ('problem_since', models.DateTimeField(blank=True, help_text='since when it waits because of the problem', null=True)),
                ('server_words', models.JSONField(blank=True, default=list)),
                ('awaits', models.CharField(blank=True, choices=[('account', 'account'), ('rights', 'rights')], help_text='what must change in the cluster before the next check', max_length=10)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('worked_seconds', models.FloatField(default=0.0, help_text='used of its deadline by applying it or restoring the previous revision')),
                ('phase', models.CharField(blank=True, db_default='', help_text='the phase of applying it, such as `2 of 5: crds`', max_length=63)),
                ('look_again_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(blank=True, null=True)),
                ('cleared_at', models.DateTimeField(blank=True, help_text='when its report and other details went (PRATIQUE_KEEP_DAYS)', null=True)),
                ('mirrored_version', models.CharField(blank=True, db_default='', help_text="the mirror's resourceVersion after it was written last", max_length=63)),
                ('last_event', models.CharField(blank=True, db_default='', help_text='round, state and problem that the latest event in the cluster told', max_length=100)),
                ('mirrored_at', models.DateTimeField(blank=True, help_text='`changed_at` of what the cluster shows', null=True)),
            ],
            options={
                'ordering': ['-created_at', '-pk'],
                'indexes': [
                    models.Index(fields=['state', 'look_again_at'], name='request_work'),
                    models.Index(fields=['settled_at'], name='request_settled'),
                    models.Index(fields=['created_at', 'id', 'state', 'cluster', 'purpose', 'format', 'deployment', 'weight'], name='request_by_time'),
                    models.Index(fields=['weight', 'created_at', 'id', 'state', 'cluster', 'purpose', 'format', 'deployment'], name='request_by_weight'),
                    models.Index(fields=['cluster', 'created_at', 'id', 'state', 'weight'], name='request_of_cluster'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'number'), name='request_number_once'),
                    models.UniqueConstraint(condition=models.Q(('state__in', ['applying', 'approved', 'in_review', 'preparing', 'restoring', 'stale'])), fields=('deployment',), name='one_open_request_per_deployment'),
                    models.CheckConstraint(condition=models.Q(('state__in', ['applied', 'applying', 'approved', 'denied', 'expired', 'failed', 'in_review', 'preparing', 'restoring', 'stale', 'superseded', 'withdrawn'])), name='request_state_known'),
                    models.CheckConstraint(condition=models.Q(('state__in', ['preparing', 'failed', 'superseded', 'expired', 'withdrawn', 'stale']), models.Q(('subject_digest', ''), _negated=True), _connector='OR'), name='request_reviewable_has_subject'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LookupAnswers',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='lookup_answers', to='approvals.request')),
                ('body', approvals.encryption.fields.EncryptedJSONField(bound_to=('request_id',), place='lookups of request')),
            ],
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='outcomes', to='approvals.request')),
                ('step', models.CharField(choices=[('apply', 'apply'), ('restore', 'restore'), ('optional', 'optional')], default='apply', max_length=10)),
                ('position', models.PositiveIntegerField()),
                ('phase', models.CharField(blank=True, max_length=20)),
                ('object', models.CharField(max_length=640)),
                ('action', models.CharField(max_length=10)),
                ('state', models.CharField(max_length=10)),
                ('message', models.TextField(blank=True)),
                ('warnings', models.JSONField(default=list)),
                ('server_words', models.TextField(blank=True)),
                ('about', models.JSONField(blank=True, null=True)),
                ('at', models.DateTimeField()),
            ],
            options={
                'ordering': ['position'],
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'step', 'object'), name='one_outcome_per_object'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PolicyEvaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='approvals.request')),
                ('round', models.PositiveIntegerField()),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='evaluations', to='approvals.policy')),
                ('policy_version', models.PositiveIntegerField()),
                ('result', models.CharField(choices=[('approves', 'Approves'), ('passes', 'Passes'), ('holds', 'Holds'), ('silent', 'Silent'), ('not-selected', 'Not Selected'), ('error', 'Error')], max_length=12)),
                ('words', models.TextField()),
                ('at', models.DateTimeField()),
            ],
            options={
                'ordering': ['policy__name', '-at'],
                'indexes': [
                    models.Index(fields=['policy', '-at', '-id'], name='evaluation_lately'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'round', 'policy', 'policy_version'), name='one_evaluation_per_policy_version'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Report',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='approvals.request')),
                ('round', models.PositiveIntegerField()),
                ('worst', models.CharField(max_length=10)),
                ('headline', models.JSONField(default=list)),
                ('severities', models.JSONField(default=dict)),
                ('actions', models.JSONField(default=dict)),
                ('body', approvals.encryption.fields.EncryptedJSONField(bound_to=('request_id', 'round'), place='report of request')),
                ('computed_at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'round'), name='one_report_per_round'),
                ],
            },
        ),
        migrations.CreateModel(
            name='RequestAsker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='askers', to='approvals.request')),
                ('username', models.CharField(max_length=253)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['username', 'request'], name='asker_requests'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'username'), name='one_row_per_request_and_asker'),
                ],
            },
        ),
        migrations.CreateModel(
            name='RequestRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rules', to='approvals.request')),
                ('rule', models.CharField(max_length=20)),
                ('weight', models.PositiveSmallIntegerField()),
            ],
            options={
                'indexes': [
                    models.Index(fields=['rule', 'request'], name='rule_requests'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'rule'), name='one_row_per_request_and_rule'),
                ],
            },
        ),
        migrations.CreateModel(
            name='RequestText',
            fields=[
                ('request', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='searched', serialize=False, to='approvals.request')),
                ('text', models.TextField()),
            ],
        ),
        migrations.CreateModel(
            name='Review',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reviews', to='approvals.request')),
                ('round', models.PositiveIntegerField()),
                ('decision', models.CharField(choices=[('Approve', 'Approve'), ('RequestChanges', 'Request changes'), ('Deny', 'Deny')], max_length=14)),
                ('subject_digest', models.CharField(max_length=80)),
                ('reason', models.TextField(blank=True)),
                ('channel', models.CharField(choices=[('browser', 'Browser'), ('rest', 'Rest'), ('chat', 'Chat'), ('webhook', 'Webhook'), ('kubectl', 'Kubectl'), ('policy', 'Policy')], max_length=10)),
                ('voter', models.CharField(max_length=300)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='reviews', to=settings.AUTH_USER_MODEL)),
                ('policy', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.policy')),
                ('policy_version', models.PositiveIntegerField(blank=True, null=True)),
                ('username', models.CharField(max_length=253)),
                ('uid', models.CharField(blank=True, max_length=253)),
                ('groups', models.JSONField(default=list)),
                ('issuer', models.CharField(blank=True, default='', max_length=255)),
                ('subject', models.CharField(blank=True, default='', max_length=255)),
                ('acknowledges', models.JSONField(default=list)),
                ('may_use_account', models.BooleanField(default=False, help_text='may impersonate the installing ServiceAccount')),
                ('may_write', models.BooleanField(default=False, help_text='this reviewer may be who wrote the spec, or asked for it, under another name')),
                ('doubt', models.TextField(blank=True, db_default='', help_text='why they may be: the right, and by whose name')),
                ('waives', models.JSONField(default=list)),
                ('access_reason', models.TextField(blank=True, help_text="the API server's words when it allowed this")),
                ('override_reason', models.TextField(blank=True, help_text='its words when it allowed to waive')),
                ('replaces', models.OneToOneField(blank=True, help_text='the earlier review by the same reviewer, which no longer counts', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replaced_by', to='approvals.review')),
                ('given_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['given_at', 'pk'],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('replaces', None)), fields=('request', 'round', 'voter'), name='one_first_review_per_reviewer_and_round'),
                    models.CheckConstraint(condition=models.Q(('decision__in', ['Approve', 'RequestChanges', 'Deny'])), name='review_decision_known'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('deployment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='approvals.bundledeployment')),
                ('number', models.PositiveIntegerField()),
                ('request', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='revision', to='approvals.request')),
                ('content', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='revisions', to='approvals.content')),
                ('state', models.CharField(choices=[('applying', 'Applying'), ('active', 'Active'), ('failed', 'Failed'), ('replaced', 'Replaced'), ('removed', 'Removed')], max_length=10)),
                ('message', models.TextField(blank=True)),
                ('started_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('healthy_at', models.DateTimeField(blank=True, help_text='when it was first observed healthy', null=True)),
                ('overdue_at', models.DateTimeField(blank=True, help_text='when it missed its deadline to become healthy', null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_by', models.CharField(blank=True, help_text='user name on the cluster', max_length=253)),
                ('revoked_reason', models.CharField(blank=True, max_length=1000)),
            ],
            options={
                'ordering': ['-number'],
                'constraints': [
                    models.UniqueConstraint(fields=('deployment', 'number'), name='revision_number_once'),
                    models.UniqueConstraint(condition=models.Q(('state', 'active')), fields=('deployment',), name='one_active_revision'),
                    models.CheckConstraint(condition=models.Q(models.Q(('revoked_at', None), ('revoked_by', ''), ('revoked_reason', '')), models.Q(('revoked_at__isnull', False), models.Q(('revoked_by', ''), _negated=True), models.Q(('revoked_reason', ''), _negated=True)), _connector='OR'), name='revoked_by_somebody_for_a_reason'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Verdict',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='verdicts', to='approvals.request')),
                ('round', models.PositiveIntegerField()),
                ('verdict', models.CharField(choices=[('Approved', 'Approved'), ('Denied', 'Denied')], max_length=8)),
                ('subject_digest', models.CharField(max_length=80)),
                ('given_at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'round'), name='one_verdict_per_round'),
                    models.CheckConstraint(condition=models.Q(('verdict__in', ['Approved', 'Denied'])), name='verdict_known'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ViewedObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.request')),
                ('subject_digest', models.CharField(max_length=80)),
                ('object', models.CharField(max_length=640)),
                ('at', models.DateTimeField()),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('user', 'request', 'subject_digest', 'object'), name='object_viewed_once_a_round'),
                ],
            },
        ),
        migrations.CreateModel(
            name='VoidedRound',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('request', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='voided_rounds', to='approvals.request')),
                ('round', models.PositiveIntegerField()),
                ('was_approved', models.BooleanField()),
                ('code', models.CharField(max_length=40)),
                ('words', models.TextField()),
                ('objects_differing', models.JSONField(default=list)),
                ('more_objects', models.PositiveIntegerField(default=0)),
                ('at', models.DateTimeField()),
            ],
            options={
                'ordering': ['round'],
                'constraints': [
                    models.UniqueConstraint(fields=('request', 'round'), name='one_end_per_round'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Dismissal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('review', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='dismissals', to='approvals.review')),
                ('reason', models.TextField()),
                ('channel', models.CharField(choices=[('browser', 'Browser'), ('rest', 'Rest'), ('chat', 'Chat'), ('webhook', 'Webhook'), ('kubectl', 'Kubectl'), ('policy', 'Policy')], max_length=10)),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('username', models.CharField(max_length=253)),
                ('uid', models.CharField(blank=True, max_length=253)),
                ('issuer', models.CharField(blank=True, default='', max_length=255)),
                ('subject', models.CharField(blank=True, default='', max_length=255)),
                ('override_reason', models.TextField(blank=True, help_text="the API server's words when it allowed this")),
                ('given_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['given_at', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='Drift',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='drift', to='approvals.inventoryitem')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='approvals.revision')),
                ('state', models.CharField(choices=[('open', 'Open'), ('corrected', 'Corrected'), ('over', 'Over')], max_length=10)),
                ('kind', models.CharField(max_length=10)),
                ('message', models.TextField(blank=True)),
                ('fields', approvals.encryption.fields.EncryptedJSONField(bound_to=('item_id',), place='fields of drift')),
                ('problem', models.TextField(blank=True)),
                ('server_words', models.TextField(blank=True)),
                ('strikes', models.PositiveIntegerField(default=0)),
                ('corrected_at', models.DateTimeField(blank=True, null=True)),
                ('is_fight', models.BooleanField(default=False)),
                ('rival', models.CharField(blank=True, max_length=300)),
                ('found_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['-changed_at', '-pk'],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('state__in', ['open', 'corrected', 'over'])), name='drift_state_known'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Finding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('report', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='findings', to='approvals.report')),
                ('position', models.PositiveIntegerField()),
                ('rule', models.CharField(max_length=20)),
                ('section', models.CharField(max_length=20)),
                ('severity', models.CharField(max_length=10)),
                ('message', models.TextField()),
                ('object', models.CharField(blank=True, max_length=600)),
                ('fingerprint', models.CharField(max_length=80)),
                ('is_new', models.BooleanField(default=True)),
            ],
            options={
                'ordering': ['position'],
                'indexes': [
                    models.Index(fields=['rule', 'severity'], name='finding_rule'),
                ],
            },
        ),
        migrations.CreateModel(
            name='OptionalObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='optional_objects', to='approvals.revision')),
                ('group', models.CharField(blank=True, max_length=253)),
                ('version', models.CharField(max_length=63)),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(blank=True, max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('created', 'Created'), ('asked', 'Asked')], default='waiting', max_length=10)),
                ('problem', models.TextField(blank=True)),
                ('look_at', models.DateTimeField(blank=True, null=True)),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['kind', 'namespace', 'name'],
                'constraints': [
                    models.UniqueConstraint(fields=('revision', 'group', 'kind', 'namespace', 'name'), name='optional_object_once_per_revision'),
                    models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'created', 'asked'])), name='optional_state_known'),
                ],
            },
        ),
        migrations.AddField(
            model_name='bundledeployment',
            name='active_revision',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.revision'),
        ),
        migrations.AddField(
            model_name='catalog',
            name='edition',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.catalogedition'),
        ),
        migrations.AddField(
            model_name='followedpackage',
            name='request',
            field=models.ForeignKey(blank=True, help_text='the last one that was for it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.request'),
        ),
        migrations.AddField(
            model_name='hookrun',
            name='request',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='hook_runs', to='approvals.request'),
        ),
        migrations.AddField(
            model_name='inventoryitem',
            name='revision',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='inventory', to='approvals.revision'),
        ),
        migrations.AddField(
            model_name='kubectlreview',
            name='review',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='kubectl_reviews', to='approvals.review'),
        ),
        migrations.AddConstraint(
            model_name='kubectlreview',
            constraint=models.UniqueConstraint(fields=('cluster', 'uid'), name='kubectl_review_once_per_cluster'),
        ),
        migrations.AddIndex(
            model_name='kubectlreview',
            index=models.Index(condition=models.Q(('finished_at__isnull', True)), fields=['cluster', 'created_at'], name='kubectl_review_due'),
        ),
        migrations.AddIndex(
            model_name='kubectlreview',
            index=models.Index(fields=['cluster', 'username', 'created_at'], name='kubectl_review_by_person'),
        ),
        migrations.AddField(
            model_name='stray',
            name='revision',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='approvals.revision'),
        ),
        migrations.AddField(
            model_name='request',
            name='from_revision',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.revision'),
        ),
        migrations.AddField(
            model_name='request',
            name='to_revision',
            field=models.ForeignKey(blank=True, help_text='the revision whose content a rollback puts back', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.revision'),
        ),
        migrations.AddConstraint(
            model_name='request',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('purpose', 'rollback'), ('to_revision__isnull', False)), models.Q(models.Q(('purpose', 'rollback'), _negated=True), ('to_revision__isnull', True)), _connector='OR'), name='rollback_has_its_revision'),
        ),
        migrations.RunPython(_append_only.create, _append_only.drop),
        migrations.RunPython(index_parts_of_texts, migrations.RunPython.noop),
    ]
