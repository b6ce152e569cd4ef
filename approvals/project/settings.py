"""Django's settings, from the environment through `configuration`."""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
from pathlib import Path

import dj_database_url
import structlog
from django.core.exceptions import ImproperlyConfigured
from whitenoise.compress import Compressor

from approvals import logs
from approvals.buckets.location import SECRETS, location_of
from approvals.encryption.keys import key_of
from approvals.project import configuration

# Before anything is read that may fail: a service says so in a log line.
if SERVICE := logs.service_of(sys.argv):
    logs.take_over(SERVICE, os.environ.get("PRATIQUE_LOG_FORMAT", logs.JSON))

PACKAGE = Path(__file__).resolve().parents[1]
# The folder of templates, static and deploy: the build puts them into the package, in a checkout they lie beside it.
BASE_DIR = PACKAGE / "shipped" if (PACKAGE / "shipped").is_dir() else PACKAGE.parent
PRATIQUE = configuration.read()
logs.hide(configuration.secrets_of(PRATIQUE))
logs.hide(os.environ[name] for name in SECRETS if os.environ.get(name))
IS_TEST = "pytest" in sys.modules or os.environ.get("PYTEST_VERSION") is not None
# Commands that serve nobody and keep nothing need no secret.
TOOLS = {
    "admission",
    "cluster_manifests",
    "collectstatic",
    "makemigrations",
    "demo",
    "spectacular",
    "new_encryption_key",
}
HELP = {"--help", "-h"}
PROGRAM = Path(sys.argv[0])
IS_TOOL = "mypy" in (PROGRAM.name, PROGRAM.parent.name) or (
    PROGRAM.name in ("manage.py", "pratique-manage")
    and (not sys.argv[1:] or sys.argv[1] in TOOLS | HELP | {"help"} or (len(sys.argv) == 3 and sys.argv[2] in HELP))
)

DEBUG = PRATIQUE["DEBUG"]
SECRET_KEY = PRATIQUE["SECRET_KEY"]
if not SECRET_KEY:
    if not (DEBUG or IS_TEST or IS_TOOL):
        raise ImproperlyConfigured("PRATIQUE_SECRET_KEY is empty: give it at least 50 random characters")
    SECRET_KEY = "not-a-secret-for-development-and-tests-only-0123456789"  # noqa: S105 - refused in production above
    if IS_TOOL:
        SECRET_KEY = secrets.token_urlsafe(50)
if not PRATIQUE["ENCRYPTION_KEYS"]:
    if not (DEBUG or IS_TEST or IS_TOOL):
        raise ImproperlyConfigured(
            "PRATIQUE_ENCRYPTION_KEYS is empty: `pratique-manage new_encryption_key` prints a key."
            " Keep it apart from the backups, which nobody can read without it."
        )
    if not IS_TOOL:
        PRATIQUE["ENCRYPTION_KEYS"] = (key_of(hashlib.sha256(b"not a key: for development and tests only").digest()),)
ALLOWED_HOSTS = PRATIQUE["ALLOWED_HOSTS"]
CSRF_FAILURE_VIEW = "approvals.project.crash_pages.foreign"
CSRF_TRUSTED_ORIGINS = PRATIQUE["TRUSTED_ORIGINS"]

INSTALLED_APPS = [
    "approvals.apps.ApprovalsConfig",
    "django.contrib.auth",
    "allauth.account",
    "allauth.socialaccount",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "django_filters",
    "csp",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "approvals.project.middleware.Forwarding",
    "approvals.project.middleware.RequestLog",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "approvals.project.middleware.Callers",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "approvals.project.middleware.Throttle",
]

ROOT_URLCONF = "approvals.project.urls"
WSGI_APPLICATION = "approvals.project.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": dj_database_url.parse(PRATIQUE["DATABASE_URL"], conn_max_age=60, conn_health_checks=True)}
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # Several processes write it in the demo (decision 0007): a writer waits its turn instead of failing.
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;"
        " PRAGMA secure_delete=ON;",
    }
# Permission answers live here for some seconds (access.questions): in each process's own memory, since whoever could
# write to a shared cache could give themselves permissions. Counters of limits (approvals.rate_limits) are in Redis.
# Answers of Kubernetes about rows of lists above all: some fifty a person and page, for seconds.
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 10_000}}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATIC_ROOT = Path(PRATIQUE["STATIC_DIR"]).resolve()
STATICFILES_DIRS = [BASE_DIR / "static"]
# An image has its files collected, hashed and compressed; without that they are served from where they lie.
IS_COLLECTED = (STATIC_ROOT / "staticfiles.json").exists() or "collectstatic" in sys.argv
WHITENOISE_USE_FINDERS = not IS_COLLECTED
# Beside the usual ones source maps, which only an open debugger fetches: they took two thirds of the time.
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
# Every client of a test starts the middleware anew; it would list all files each time.
WHITENOISE_AUTOREFRESH = DEBUG or IS_TEST
BUCKET = location_of(PRATIQUE)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "content": {"BACKEND": "approvals.buckets.bucket.Bucket", "OPTIONS": {"location": BUCKET}}
    if BUCKET
    else {"BACKEND": "approvals.encryption.files.PrivateFiles", "OPTIONS": {"location": PRATIQUE["CONTENT_DIR"]}},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if IS_COLLECTED and not IS_TEST
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRATIQUE["HTTPS"]
SESSION_COOKIE_AGE = PRATIQUE["SESSION_HOURS"] * 3600
SECURE_HSTS_SECONDS = 31_536_000 if PRATIQUE["HTTPS"] else 0
# Left by approvals.project.middleware, where a trusted proxy says so.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "base-uri": ["'none'"],
    }
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "approvals.api.description.Described",
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "approvals.api.authentication.TokenAuthentication",
        "approvals.api.authentication.BrowserAuthentication",
        "approvals.api.authentication.ProxyAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "rest_framework.permissions.IsAuthenticated",
        "approvals.api.authentication.InScope",
    ],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "approvals.api.filters.Pages",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "approvals.api.problems.handle",
    "DEFAULT_THROTTLE_CLASSES": ["approvals.api.authentication.ByPerson", "approvals.api.authentication.ByAction"],
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Pratique",
    "DESCRIPTION": "Requests, reports, reviews and revisions of bundle deployments on Kubernetes clusters.",
    "VERSION": "v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

CELERY_BROKER_URL = PRATIQUE["REDIS_URL"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# Without end: by default a worker exits when Redis has been away for 50 minutes.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# Who wakes a worker is often a person's click: a queue that is down is found out at once, and the sweep does the rest.
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 10,
    "socket_connect_timeout": 2,
    "max_retries": 1,
    "interval_start": 0,
    "interval_step": 0.1,
    "interval_max": 0.1,
}
# A lost message costs at most this long: the rows say what is due.
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "approvals.sweep", "schedule": 5.0, "options": {"expires": 5}},
    "take over": {"task": "approvals.take_over", "schedule": 2.0, "options": {"expires": 5}},
    "forget": {"task": "approvals.forget_ended", "schedule": 600.0, "options": {"expires": 600}},
    "clear": {"task": "approvals.clear", "schedule": 3600.0, "options": {"expires": 3600}},
    "check the audit": {"task": "approvals.check_audit", "schedule": 3600.0, "options": {"expires": 3600}},
}

structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
LOGGING = logs.configuration(PRATIQUE["LOG_FORMAT"])

if PRATIQUE["SENTRY_DSN"]:
    import sentry_sdk

    # Local variables may hold the values of Secrets and the bytes of bundles (promise 8).
    sentry_sdk.init(
        dsn=PRATIQUE["SENTRY_DSN"], send_default_pii=False, include_local_variables=False, max_request_body_size="never"
    )
