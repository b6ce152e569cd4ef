"""Serve the issuer until it is stopped."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

HOST = "127.0.0.1"


def main() -> None:
    parser = argparse.ArgumentParser(prog="issuer", description="An OpenID Connect issuer for the demo.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="keys, database and people.json")
    parser.add_argument("--redirect-uri", required=True, help="redirect URL after sign-in")
    parser.add_argument("--home", required=True, help="redirect URL after sign-out")
    parser.add_argument("--back-channel", default="", help="back-channel logout URL")
    parser.add_argument("--front-channel", default="", help="front-channel logout URL")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(
        DJANGO_SETTINGS_MODULE="approvals.management.demo.issuer.settings",
        ISSUER_FOLDER=str(given.folder),
        ISSUER_URL=f"http://{HOST}:{given.port}",
        ISSUER_BACK_CHANNEL=given.back_channel,
        ISSUER_FRONT_CHANNEL=given.front_channel,
    )
    application = get_wsgi_application()
    call_command("migrate", verbosity=0)
    _add_clients(given.redirect_uri, given.home)
    # Gunicorn is there anyway; Django's own server would watch files and speak of development.
    from gunicorn.app.wsgiapp import WSGIApplication  # noqa: PLC0415 - it reads the command line when it is made

    class Server(WSGIApplication):  # type: ignore[misc]  # gunicorn has no types
        def init(self, *_: object) -> None:
            """Nothing is read from the command line."""

        def load_config(self) -> None:
            for name, value in {"bind": f"{HOST}:{given.port}", "threads": 4, "loglevel": "warning"}.items():
                self.cfg.set(name, value)

        def load(self) -> object:
            return application

    Server().run()


def _add_clients(redirect_uri: str, home: str) -> None:
    from oauth2_provider.models import Application  # noqa: PLC0415 - configured above

    from approvals.management.demo.issuer.settings import CLIENT_ID, COMMAND_LINE_ID  # noqa: PLC0415 - configured above

    # A loopback address without a port stands for every port (RFC 8252, section 7.3).
    for client, name, comes_back in (
        (CLIENT_ID, "Pratique", redirect_uri),
        (COMMAND_LINE_ID, "kubectl pratique", f"http://{HOST}/"),
    ):
        Application.objects.update_or_create(
            client_id=client,
            defaults={
                "name": name,
                "client_type": Application.CLIENT_PUBLIC,
                "authorization_grant_type": Application.GRANT_AUTHORIZATION_CODE,
                "redirect_uris": comes_back,
                "post_logout_redirect_uris": home,
                "algorithm": Application.RS256_ALGORITHM,
                "skip_authorization": True,
            },
        )


if __name__ == "__main__":
    main()
