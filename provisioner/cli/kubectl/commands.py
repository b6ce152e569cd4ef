"""The parser of `kubectl pratique` and the table of its commands."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import NoReturn

from provisioner.cli.arguments import Usage
from provisioner.cli.explain import COMMANDS as EXPLANATIONS
from provisioner.cli.explain import explained
from provisioner.cli.kubectl import apis, bundles, catalogs, grants, needs, policies, rukpak, sets
from provisioner.cli.kubectl.break_glass import break_glass
from provisioner.cli.kubectl.cluster import add_cluster, advice_for, bare_name, with_options_behind
from provisioner.cli.kubectl.deciding import confirmations, deputies, guards, rules, stops
from provisioner.cli.kubectl.decisions import decide, pause, resume, rollback, rotate
from provisioner.cli.kubectl.login import BACK_SECONDS, login, logout
from provisioner.cli.kubectl.requests import diff, history, list_requests, show
from provisioner.cli.kubectl.service import add_service
from provisioner.cli.kubectl.terminal import page
from provisioner.errors import PratiqueError
from provisioner.escaping import visible

UNKNOWN = 2
INTERRUPTED = 130
COUNT_SECONDS = 30.0
EXPLAIN = EXPLANATIONS[0]
# Forms of tables, beside text, json and yaml: why each request stands as it does, and names for other commands.
LISTINGS = ("wide", "name")
EPILOG = """\
Uses kubectl's kubeconfig and context, and sends its credentials only to the API
server. Kubernetes decides what you may do. NAME is a request, or a
BundleDeployment, which stands for its current request. Whole reports come from
Pratique's service: see `login --help`. Cluster options (--kubeconfig, --context,
--as, --as-group, --color) can also be given before the command.

exit status
  0    done
  1    decisions: the review did not count; diff: there are differences;
       preview: there are findings; convert: you must complete the output;
       policy: a request would have been held or approved;
       confirm: the exception does not count yet;
       apis: no API matches; rbac: something other than rights is in the way
  2    an error, or wrong usage
  130  interrupted
"""
_NO_COMMAND = re.compile(r"argument COMMAND: invalid choice: '(.*?)' \(choose from", re.DOTALL)
_DECIDE_EPILOG = """\
Your decision is bound to the digest that was shown. If the request changes while
you read, no review is created. Deletions, replacements and adoptions that an
approval must accept are shown, and you are asked to confirm them; without a
terminal, the command says which options to add.

exit status
  0  the review counted
  1  the review did not count: the answer says why and what to do
  2  no review was created, or it was not counted in time
"""
_BREAK_GLASS_EPILOG = """\
Needs the verb break-glass on the BundleDeployment, --reason and --incident, and
no service: it creates a BundleDeploymentReview, which Pratique's worker counts.
Everyone is notified, and someone else must review it afterwards with `accept` or
`object`. Until then you cannot break glass again. A denial stays a denial.

With --drill, NAME is a BundleDeployment. Practise it before you need it.

exit status
  0  it counted; --drill: you could break glass
  1  it did not count: the answer says why; --drill: something is in the way
  2  no review was created, or it was not counted in time
"""
_SHOW_EPILOG = """\
Without a login, shows the summary, digest, conditions and reviews from the
cluster. With a login, also shows the whole report from Pratique's service. -o
prints the request as stored in the cluster, or with --report the report.

the service
  The address comes from --service or PRATIQUE_SERVICE, or from the request.
  Your token is only sent to an address where you have logged in.
  PRATIQUE_SERVICE_CA names a file with the certificate authority of the service,
  if your system does not trust it.
"""
_DIFF_EPILOG = """\
OBJECT is KIND/NAME, KIND/NAMESPACE/NAME or a name. Needs a login. Values of
Secrets are never shown; values that look like credentials are hidden unless
--show-credentials is given. You see only objects that Kubernetes lets you get.

exit status
  0  no differences
  1  there are differences
  2  an error
"""
_LOGIN_EPILOG = """\
Your browser signs in at the issuer of the service and returns to a local address
on this machine. On a machine without a browser, create a token with the scope
read on the account page and paste it: --token -

The token can read reports, not decide; reviews are created in the cluster. It is
kept in a file that only you can read, one for each service, below
$XDG_CONFIG_HOME/kubectl-pratique (default: ~/.config/kubectl-pratique). The
credentials in your kubeconfig are never sent to the service.
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
        print("kubectl pratique: the reader of standard output is gone", file=sys.stderr)
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
        near = difflib.get_close_matches(typed[1], [command.name for command in COMMANDS]) if typed else []
        if typed:
            asked = f": did you mean {' or '.join(near)}?" if near else "; `kubectl pratique --help` lists them"
            message = f"there is no command {visible(typed[1])}{asked}"
        super().error(message)


def parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    made = _Parser(
        prog="kubectl pratique",
        description="Review requests of BundleDeployments.",
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
    next(command for command in COMMANDS if command.name == name).add(made)
    return made


def _add_name(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a request or a BundleDeployment")
    add_cluster(sub)


def _add_output(sub: argparse.ArgumentParser, *more: str) -> None:
    forms = ("text", *more, "json", "yaml")
    sub.add_argument("-o", "--output", choices=forms, default="text", help="default: %(default)s")
    sub.add_argument("-w", "--watch", action="store_true", help="print it again whenever it changes, until interrupted")


def _add_list(sub: argparse.ArgumentParser) -> None:
    add_cluster(sub)
    _add_output(sub, *LISTINGS)
    sub.add_argument("-a", "--all", action="store_true", help="also list requests that have ended")


def _add_history(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    _add_output(sub, *LISTINGS[1:])


def _add_service(sub: argparse.ArgumentParser) -> None:
    add_service(sub)


def _add_show(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    _add_output(sub)
    _add_service(sub)
    sub.add_argument("--report", action="store_true", help="only the report; needs a login")
    sub.add_argument("--all", action="store_true", help="also show safe and unchanged findings, with every location")


def _add_diff(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", metavar="NAME", type=bare_name, help="a request or a BundleDeployment")
    sub.add_argument(
        "object", metavar="OBJECT", nargs="?", default="", help="only this object; default: all objects that change"
    )
    add_cluster(sub)
    _add_service(sub)
    sub.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: %(default)s")
    sub.add_argument(
        "--show-credentials",
        action="store_true",
        help="show values that look like credentials; values of Secrets stay hidden",
    )


def _add_login(sub: argparse.ArgumentParser) -> None:
    _add_service(sub)
    sub.add_argument("--token", metavar="-", default="", help="read a token from the terminal or standard input")
    sub.add_argument("--issuer", metavar="NAME", default="", help="which issuer, if there are several")
    sub.add_argument("--no-browser", action="store_true", help="print the sign-in address instead of opening a browser")
    sub.add_argument("--timeout", type=float, default=BACK_SECONDS, help="seconds to wait; default: %(default)s")


def _add_decision(decision: str) -> Callable[[argparse.ArgumentParser], None]:
    def add(sub: argparse.ArgumentParser) -> None:
        _add_name(sub)
        sub.add_argument("--reason", default="", help="reason, shown to the requester and kept in the record")
        sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
        sub.add_argument("--timeout", type=float, default=COUNT_SECONDS, help="seconds to wait; default: %(default)s")
        if decision in ("Approve", "BreakGlass"):
            acknowledges = "a deletion, replacement or adoption in the plan that you accept; can be repeated"
            sub.add_argument("--acknowledge", metavar="ACTION", action="append", help=acknowledges)
        if decision == "Approve":
            later = "apply it at this time at the earliest, such as 2026-12-05T03:00; default zone: this machine's"
            sub.add_argument("--apply-at", metavar="TIME", default="", help=later)
        sub.set_defaults(decision=decision, acknowledge=[], incident="", apply_at="")

    return add


def _add_break_glass(sub: argparse.ArgumentParser) -> None:
    _add_decision("BreakGlass")(sub)
    sub.add_argument("--incident", default="", help="number of the incident")
    drill = "try with dry runs whether you could break glass for this BundleDeployment; nothing is written"
    sub.add_argument("--drill", action="store_true", help=drill)


def _add_pause(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    sub.add_argument("--reason", default="", help="reason, shown to those who wait")


def _add_change_words(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--reason", default="", help="why the change is made, shown with its request")
    sub.add_argument("--ticket", default="", help="ticket of the change, without an @")


def _add_rollback(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    sub.add_argument("revision", metavar="REVISION", type=int, help="revision number, as `history` shows it")
    _add_change_words(sub)


def _add_rotate(sub: argparse.ArgumentParser) -> None:
    _add_name(sub)
    target = "a Secret, or one of its keys as SECRET/KEY; default: all values but names of objects"
    sub.add_argument("target", metavar="SECRET[/KEY]", nargs="?", default="*", help=target)
    _add_change_words(sub)
    sub.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


def _explain(options: argparse.Namespace) -> int:
    page(explained(options))
    return 0


COMMANDS: tuple[Command, ...] = (
    Command("list", "list open requests with their worst finding", _add_list, list_requests),
    Command(
        "show", "show a request: what would change, its digest, conditions and reviews", _add_show, show, _SHOW_EPILOG
    ),
    Command("diff", "show the lines that a request changes in each object", _add_diff, diff, _DIFF_EPILOG),
    Command("approve", "approve a request", _add_decision("Approve"), decide, _DECIDE_EPILOG),
    Command("deny", "deny a request", _add_decision("Deny"), decide, _DECIDE_EPILOG),
    Command(
        "request-changes",
        "ask for changes before a request can be approved",
        _add_decision("RequestChanges"),
        decide,
        _DECIDE_EPILOG,
    ),
    Command(
        "break-glass",
        "in an emergency, skip missing approvals, policies, rules and windows",
        _add_break_glass,
        break_glass,
        _BREAK_GLASS_EPILOG,
    ),
    Command("accept", "accept a break-glass afterwards", _add_decision("Accept"), decide, _DECIDE_EPILOG),
    Command("object", "object to a break-glass afterwards", _add_decision("Object"), decide, _DECIDE_EPILOG),
    Command("set", sets.HELP, sets.add, sets.run, sets.EPILOG),
    Command("rules", rules.RULES_HELP, rules.add_rules, rules.show_rules, rules.RULES_EPILOG),
    Command("window", rules.WINDOW_HELP, rules.add_window, rules.show_window, rules.WINDOW_EPILOG),
    Command("stop", stops.STOP_HELP, stops.add_stop, stops.stop, stops.STOP_EPILOG),
    Command("start", stops.START_HELP, stops.add_start, stops.start, stops.START_EPILOG),
    Command("deputy", deputies.HELP, deputies.add, deputies.run, deputies.EPILOG),
    Command("guard", guards.HELP, guards.add, guards.run, guards.EPILOG),
    Command("confirm", confirmations.HELP, confirmations.add, confirmations.confirm, confirmations.EPILOG),
    Command("needs", needs.HELP, needs.add, needs.show_needs, needs.EPILOG),
    Command("history", "list the requests of a BundleDeployment, latest first", _add_history, history),
    Command("rollback", "request the content of an earlier revision", _add_rollback, rollback),
    Command("rotate", "request new values in place of those that the chart made up", _add_rotate, rotate),
    Command("pause", "stop applying approved requests of a BundleDeployment", _add_pause, pause),
    Command("resume", "apply approved requests of a BundleDeployment again", _add_name, resume),
    Command("apis", apis.HELP, apis.add, apis.apis, apis.EPILOG),
    Command("grant", grants.HELP, grants.add, grants.grant, grants.EPILOG),
    Command("rbac", bundles.RBAC_HELP, bundles.add_rbac, bundles.rbac, bundles.RBAC_EPILOG),
    Command("explain", EXPLAIN.help, EXPLAIN.add, _explain, EXPLAIN.epilog),
    Command("preview", bundles.PREVIEW_HELP, bundles.add_preview, bundles.preview, bundles.PREVIEW_EPILOG),
    Command("catalog", catalogs.HELP, catalogs.add, catalogs.run, catalogs.EPILOG),
    Command("policy", policies.HELP, policies.add, policies.run, policies.EPILOG),
    Command("convert", rukpak.CONVERT_HELP, rukpak.add_convert, rukpak.convert, rukpak.CONVERT_EPILOG),
    Command("login", "get a token to read whole reports from Pratique's service", _add_login, login, _LOGIN_EPILOG),
    Command("logout", "revoke the token and delete it", _add_service, logout),
)
