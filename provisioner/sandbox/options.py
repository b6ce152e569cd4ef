"""The options of a call's query, checked as the API server checks them."""

from __future__ import annotations

from provisioner.sandbox.calls import SandboxCall
from provisioner.sandbox.status import StatusRefusal, bad_request, invalid

_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def check_writing(call: SandboxCall, *, is_apply: bool) -> None:
    """Raise StatusRefusal 422 for a dryRun, fieldValidation, force or fieldManager that does not exist or fit."""
    causes: list[tuple[str, str]] = []
    dry_run, validation = call.query.get("dryRun", ""), call.query.get("fieldValidation", "")
    if dry_run not in ("", "All"):
        causes.append(("dryRun", f'Unsupported value: ["{dry_run}"]: supported values: "All"'))
    if validation not in _VALIDATIONS and call.method != "DELETE":
        listed = ", ".join(f'"{it}"' for it in _VALIDATIONS)
        causes.append(("fieldValidation", f'Unsupported value: "{validation}": supported values: {listed}'))
    if is_apply and not call.query.get("fieldManager"):
        causes.append(("fieldManager", "Required value: is required for apply patch"))
    if call.query.get("force") and not is_apply:
        causes.append(("force", "Forbidden: may not be specified for non-apply patch"))
    if len(call.query.get("fieldManager", "")) > 128:
        causes.append(("fieldManager", "Too long: may not be more than 128 bytes"))
    if causes:
        raise invalid(f"{_KINDS.get(call.method, 'PatchOptions')}.meta.k8s.io", "", causes)


def number(call: SandboxCall, name: str) -> int:
    """A number of the query, 0 where it is not given; raises StatusRefusal 400."""
    text = call.query.get(name, "")
    if not text:
        return 0
    try:
        return int(text)
    except ValueError as exc:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from exc


def list_version(call: SandboxCall) -> None:
    """Raise StatusRefusal 400 for the resourceVersion of a list that is no number."""
    given = call.query.get("resourceVersion", "")
    if given and not given.isdigit():
        words = f'Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
        raise bad_request(f"invalid resource version: resourceVersion: {words}")


def watch_version(call: SandboxCall) -> int:
    """Where a watch begins, 0 for "now"; raises StatusRefusal 500, and 422 for a wrong sendInitialEvents."""
    wants_initial = call.query.get("sendInitialEvents", "")
    match = call.query.get("resourceVersionMatch", "")
    if wants_initial and match != "NotOlderThan":
        words = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise invalid("ListOptions.meta.k8s.io", "", [("resourceVersionMatch", words)])
    if match and not wants_initial:
        words = "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise invalid("ListOptions.meta.k8s.io", "", [("resourceVersionMatch", words)])
    given = call.query.get("resourceVersion", "") or "0"
    if not given.isdigit():
        words = f'resourceVersion: Invalid value: "{given}": strconv.ParseUint: parsing "{given}": invalid syntax'
        raise StatusRefusal(500, "", words)
    return int(given)
