"""Django's settings of the issuer, from the environment that `__main__` sets."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ROOM = "approvals.management.demo.issuer"
CLIENT_ID = "pratique"
COMMAND_LINE_ID = "kubectl-pratique"
TOKEN_SECONDS = 600


def _remembered(name: str, make: Callable[[], str]) -> str:
    path = FOLDER / name
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(make())
    return path.read_text()


def _new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


FOLDER = Path(os.environ["ISSUER_FOLDER"])
ISSUER_URL = os.environ["ISSUER_URL"]
ISSUER_PEOPLE = FOLDER / "people.json"
# Where a browser is sent, and what is told, when somebody signs out here; "" where nothing is.
ISSUER_BACK_CHANNEL = os.environ.get("ISSUER_BACK_CHANNEL", "")
ISSUER_FRONT_CHANNEL = os.environ.get("ISSUER_FRONT_CHANNEL", "")

SECRET_KEY = _remembered("secret", lambda: secrets.token_urlsafe(50))
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = f"{ROOM}.views"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions", "oauth2_provider"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "pages"],
        "APP_DIRS": True,
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": FOLDER / "issuer.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
LOGIN_URL = "sign-in"
# Browsers keep cookies by host, whatever the port: beside Pratique these need names of their own.
SESSION_COOKIE_NAME = "issuer_session"
CSRF_COOKIE_NAME = "issuer_csrf"
SIGNING_KEY = _remembered("key.pem", _new_key)
OAUTH2_PROVIDER = {
    "OIDC_ENABLED": True,
    "OIDC_ISS_ENDPOINT": ISSUER_URL,
    "OIDC_RSA_PRIVATE_KEY": SIGNING_KEY,
    "OIDC_RP_INITIATED_LOGOUT_ENABLED": True,
    "OIDC_RP_INITIATED_LOGOUT_ALWAYS_PROMPT": False,
    "OAUTH2_VALIDATOR_CLASS": f"{ROOM}.claims.Validator",
    "SCOPES": {"openid": "who you are", "profile": "your name", "groups": "your groups", "offline_access": "later"},
    "ACCESS_TOKEN_EXPIRE_SECONDS": TOKEN_SECONDS,
    "ID_TOKEN_EXPIRE_SECONDS": TOKEN_SECONDS,
    "REFRESH_TOKEN_EXPIRE_SECONDS": 30 * 86400,
    "PKCE_REQUIRED": True,
    "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
}
