"""The parser of `kubectl pratique`, and its commands that change nothing."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import NoReturn

from provisioner.cli.explain import COMMANDS as EXPLANATIONS
from provisioner.cli.explain import explained
from provisioner.cli.plugin import catalogs, converting, previewing
from provisioner.cli.plugin.changing import pause, resume, rollback
from provisioner.cli.plugin.deciding import decide
from provisioner.cli.plugin.extensions import apis, granting, installing
from provisioner.cli.plugin.looking import diff, history, list_requests, show
from provisioner.cli.plugin.reading import add_cluster, advice_for, bare_name, with_options_behind
from provisioner.cli.plugin.service import ENVIRONMENT
from provisioner.cli.plugin.signing_in import BACK_SECONDS, login, logout
from provisioner.cli.plugin.terminal import page
from provisioner.cli.usage import Usage
from provisioner.errors import PratiqueError
from provisioner.escaping import visible

UNKNOWN = 2
INTERRUPTED = 130
COUNT_SECONDS = 30.0
EXPLAIN = EXPLANATIONS[0]
# Forms of tables, beside text, json and yaml: why each request stands as it does, and names for other commands.
LISTINGS = ("wide", "name")
EPILOG = """\
It uses the kubeconfig and the context of kubectl, and sends that credential
to its API server only. What you may do is decided by Kubernetes. NAME is that
of a request, or that of a BundleDeployment, which stands for its current
request. Whole reports come from Pratique's own service: see `login --help`.
Options about the cluster (--kubeconfig, --context, --as, --as-group, --color) may
also stand before the command.

exit status
  0    done
  1    of a decision: it did not count; of diff: there are differences;
       of preview: there are findings; of convert: you have to complete it;
       of apis: none fits; of rbac: something else than rights is in the way
  2    it could not be done or found out, or was typed wrongly
  130  interrupted
"""
_NO_COMMAND = re.compile(r"argument COMMAND: invalid choice: '(.*?)' \(choose from", re.DOTALL)
_DECIDE_EPILOG = """\
What is decided is the digest that was shown. If the request changes while you
read, nothing is created. What an approval has to accept (deletions, replacements,
adoptions) is shown and asked about; without a terminal, it is said what to add.

exit status
  0  the review counted
  1  it did not: the answer says why, and what to do
  2  it was not created, or nobody has counted it in time
"""
_SHOW_EPILOG = """\
Without a login: summary, digest, conditions and reviews, from the cluster. With
one: the whole report, too, from Pratique's service. -o prints the request as
the cluster has it, with --report the report.

the service
  is named by --service or PRATIQUE_SERVICE; else it is the one that the request
  names. A token goes only where you have logged in. PRATIQUE_SERVICE_CA names a
  file with its certificate authority, where your system does not know that.
"""
_DIFF_EPILOG = """\
OBJECT is KIND/NAME, KIND/NAMESPACE/NAME or a name. Needs a login. Values of
Secrets are never shown; values that look like credentials are hidden unless
--show-credentials is given. You see what Kubernetes lets you get.

exit status
  0  nothing differs
  1  something does
  2  it could not be found out
"""
_LOGIN_EPILOG = """\
Your browser signs in at the issuer that the service names, and comes back to an
address of this machine. Without one, or on a machine without a browser, create
a token with the scope read on the account page and paste it: --token -

The token reads reports and decides nothing; reviews go by way of Kubernetes. It
is kept in a file that only you can read, one for each service, below
$XDG_CONFIG_HOME/kubectl-pratique (~/.config/kubectl-pratique). The credential of
your kubeconfig is never sent to the service.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand; `add` declares its own arguments."""

    name: str
    help: str
    add: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    epilog: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status. Errors are one sentence on stderr, never a traceback."""
    words = with_options_behind(sys.argv[1:] if argv is None else argv)
    if not words:
        parser().print_help()
        return 0
    options = parser().parse_args(words)
    try:
        return int(options.run(options))
    except PratiqueError as exc:
        _complain(f"{exc.in_full} [{exc.code}]")
        if advice := advice_for(exc):
            _complain(advice)
    except Usage as exc:
        _complain(str(exc))
    except BrokenPipeError:
        print("kubectl pratique: nobody reads the answer", file=sys.stderr)
    except OSError as exc:
        _complain(f"{exc.strerror or 'failed'}: {exc.filename or ''}")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return UNKNOWN


def _complain(words: str) -> None:
    print(f"kubectl pratique: {visible(words, keep_newlines=True)}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Names near commands where there is none of a name."""

    def error(self, message: str) -> NoReturn:
        typed = _NO_COMMAND.match(message)
        near = difflib.get_close_matches(typed[1], [one.name for one in COMMANDS]) if typed else []
        if typed:
            asked = f": did you mean {' or '.join(near)}?" if near else "; `kubectl pratique --help` lists them"
            message = f"there is no command {visible(typed[1])}{asked}"
        super().error(message)


def parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    made = _Parser(
        prog="kubectl pratique",
        description="Look at requests of BundleDeployments and decide on them.",
        epilog=EPILOG,
        formatter_class=form,
    )
    made.add_argument("--version", action="version", version=f"kubectl-pratique {metadata.version('pratique')}")
    commands = made.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name, help=command.help, description=command.help, epilog=command.epilog, formatter_class=form
        )
        command.add(sub)
        sub.set_defaults(run=command.run)
    return made


def parser_of(name: str) -> argparse.ArgumentParser:
    """The arguments of one command, by themselves."""
    made = argparse.ArgumentParser(prog=f"kubectl pratique {name}", add_help=False)
    next(one for one in COMMANDS if one.name == name).add(made)
    return made


def _add_name(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a request, or a BundleDeployment")
    add_cluster(sub)


def _add_output(sub: argparse.ArgumentParser, *more: str) -> None:
    forms = ("text", *more, "json", "yaml")
    sub.add_argument("-o", "--output", choices=forms, default="text", help="default: %(default)s")
    sub.add_argument("-w", "--watch", action="store_true", help="show it again whenever it changes, until interrupted")


def _add_list(sub: argparse.ArgumentParser) -> None:
    add_cluster(sub)
    _add_output(sub, *LISTINGS)
    sub.add_argument("-a", "--all", action="store_true", help="also requests that have ended")


def _add_history(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    _add_output(sub, *LISTINGS[1:])


def _add_service(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--service", metavar="URL", default="", help=f"Pratique's address; else that of {ENVIRONMENT}")


def _add_show(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    _add_output(sub)
    _add_service(sub)
    sub.add_argument("--report", action="store_true", help="the report alone, which needs a login")
    sub.add_argument("--all", action="store_true", help="what is safe or as before, and every place, too")


def _add_diff(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a request, or a BundleDeployment")
    sub.add_argument(
        "object", metavar="OBJECT", nargs="?", default="", help="only this one; all that change by default"
    )
    add_cluster(sub)
    _add_service(sub)
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")
    sub.add_argument("--show-credentials", action="store_true", help="show them, but never values of Secrets")


def _add_login(sub: argparse.ArgumentParser) -> None:
    _add_service(sub)
    sub.add_argument("--token", metavar="-", default="", help="paste a token: asked for, or read from standard input")
    sub.add_argument("--issuer", metavar="NAME", default="", help="which one, where the service has several")
    sub.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")
    sub.add_argument("--timeout", type=float, default=BACK_SECONDS, help="seconds to wait; default: %(default)s")


def _add_decision(decision: str) -> Callable[[argparse.ArgumentParser], None]:
    def add(sub: argparse.ArgumentParser) -> None:
        _add_name(sub)
        sub.add_argument("--reason", default="", help="why, for the requester and the record")
        sub.add_argument("-y", "--yes", action="store_true", help="do not ask")
        sub.add_argument("--timeout", type=float, default=COUNT_SECONDS, help="seconds to wait; default: %(default)s")
        if decision == "Approve":
            acknowledges = "a deletion, replacement or adoption of the plan that you accept; may be given several times"
            sub.add_argument("--acknowledge", metavar="ACTION", action="append", help=acknowledges)
        sub.set_defaults(decision=decision, acknowledge=[])

    return add


def _add_pause(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    sub.add_argument("--reason", default="", help="why, for whoever waits")


def _add_rollback(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    sub.add_argument("revision", metavar="REVISION", type=int, help="its number, as `history` shows it")


def _explain(options: argparse.Namespace) -> int:
    page(explained(options))
    return 0


COMMANDS: tuple[Command, ...] = (
    Command("list", "requests that are open, and what is worst in each", _add_list, list_requests),
    Command("show", "a request: what would change, its digest, conditions and reviews", _add_show, show, _SHOW_EPILOG),
    Command("diff", "the lines that a request changes in each object", _add_diff, diff, _DIFF_EPILOG),
    Command("approve", "approve a request", _add_decision("Approve"), decide, _DECIDE_EPILOG),
    Command("deny", "deny a request", _add_decision("Deny"), decide, _DECIDE_EPILOG),
    Command("request-changes", "say what has to change first", _add_decision("RequestChanges"), decide, _DECIDE_EPILOG),
    Command("history", "the requests of a BundleDeployment, the latest first", _add_history, history),
    Command("rollback", "ask for the content of an earlier revision", _add_rollback, rollback),
    Command("pause", "let approved requests of a BundleDeployment wait", _add_pause, pause),
    Command("resume", "let them be applied again", _add_name, resume),
    Command("apis", apis.HELP, apis.add, apis.apis, apis.EPILOG),
    Command("grant", granting.HELP, granting.add, granting.grant, granting.EPILOG),
    Command("rbac", installing.HELP, installing.add, installing.rbac, installing.EPILOG),
    Command("explain", EXPLAIN.help, EXPLAIN.add, _explain, EXPLAIN.epilog),
    Command("preview", previewing.HELP, previewing.add, previewing.preview, previewing.EPILOG),
    Command("catalog", catalogs.HELP, catalogs.add, catalogs.run, catalogs.EPILOG),
    Command("convert", converting.HELP, converting.add, converting.convert, converting.EPILOG),
    Command("login", "get a token that reads whole reports at Pratique's service", _add_login, login, _LOGIN_EPILOG),
    Command("logout", "revoke that token and forget it", _add_service, logout),
)
