"""What boto3 raises, in words for an operator: what was found, what was expected, what to do.

No address, no name of a bucket and no credential is in them: people see them on the page of a request that waits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from approvals.errors import StoreUnavailable

MISSING_BUCKET = frozenset({"NoSuchBucket"})
MISSING_OBJECT = frozenset({"NoSuchKey", "404", "NotFound"})
REFUSED = frozenset({"AccessDenied", "403", "Forbidden", "AllAccessDisabled", "AccountProblem", "InvalidObjectState"})
# After these the credentials are read again.
CREDENTIALS = frozenset(
    {
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "InvalidToken",
        "ExpiredToken",
        "ExpiredTokenException",
        "TokenRefreshRequired",
        "InvalidClientTokenId",
    }
)
REGION = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "PermanentRedirect",
        "IllegalLocationConstraintException",
        "301",
        "IncorrectEndpoint",
    }
)
SKEW = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_CODE = re.compile(r"[A-Za-z0-9.]{1,60}")
_REGION = re.compile(r"expecting '([a-z0-9-]{1,63})'|expected '?([a-z0-9-]{1,63})")
SEE = "`pratique-manage check_content_store` says which rights and settings are missing"


def code_of(exc: Exception) -> str:
    """The code in a server's answer; "" where none came."""
    return str(_error(exc).get("Code", ""))


def is_missing(exc: Exception) -> bool:
    return code_of(exc) in MISSING_OBJECT


def are_of_credentials(exc: Exception) -> bool:
    return code_of(exc) in CREDENTIALS or type(exc).__name__ in _CREDENTIAL_ERRORS


def unavailable(exc: Exception, doing: str) -> StoreUnavailable:
    """`doing` is what was tried, as in "reading an object"."""
    why = _answered(exc) if code_of(exc) else _unanswered(exc)
    return worded(why, doing, is_refused=code_of(exc) in REFUSED)


def worded(why: str, doing: str, *, is_refused: bool = False) -> StoreUnavailable:
    return StoreUnavailable(f"the content store could not be used ({doing}): {why}", is_refused=is_refused)


def _answered(exc: Exception) -> str:
    code = code_of(exc)
    shown = code if _CODE.fullmatch(code) else "an unknown code"
    if code in MISSING_BUCKET:
        return "the bucket does not exist; create it, or correct PRATIQUE_CONTENT_S3_BUCKET or _ENDPOINT"
    if code in REFUSED:
        return f"the credentials do not allow it ({shown}); {SEE}"
    if code in CREDENTIALS:
        return f"the credentials are not accepted ({shown}); replace them where this process has them from"
    if code in REGION:
        return (
            f"the bucket is in another region ({shown}{_region(exc)}); correct PRATIQUE_CONTENT_S3_REGION or _ENDPOINT"
        )
    if code in SKEW:
        return f"the clocks of this machine and of the S3 server differ too much{_clocks(exc)}; set them by NTP"
    if code in MISSING_OBJECT:
        return (
            "what answers knows no such bucket or object; check PRATIQUE_CONTENT_S3_BUCKET, _ENDPOINT and _PATH_STYLE"
        )
    return f"the S3 server answered {shown} (status {_status(exc)}); it will be tried again"


UNVERIFIED = "the certificate of the S3 server cannot be verified; name its authority in PRATIQUE_CONTENT_S3_CA_FILE"
NO_S3 = "what answers at PRATIQUE_CONTENT_S3_ENDPOINT is no S3 server"
CUT_SHORT = "the list of the bucket ends early: the S3 server says that there is more, and not where"
# By the name of the class: botocore is not loaded here.
_UNANSWERED = {
    "NoCredentialsError": "this process has no credentials; give it some in one of AWS's own places",
    "PartialCredentialsError": "part of the credentials is missing; expected an access key and its secret",
    "CredentialRetrievalError": "the credentials could not be fetched from where the environment says",
    "UnauthorizedSSOTokenError": "the credentials have expired",
    "ProfileNotFound": "the profile in AWS_PROFILE does not exist",
    "InvalidRegionError": "the region is not valid; correct PRATIQUE_CONTENT_S3_REGION",
    "NoRegionError": "no region is known; set PRATIQUE_CONTENT_S3_REGION",
    "SSLError": "no TLS connection to the S3 server; check whether PRATIQUE_CONTENT_S3_ENDPOINT is http:// or https://",
    "EndpointConnectionError": "no connection to the S3 server; check PRATIQUE_CONTENT_S3_ENDPOINT and the network",
    "ProxyConnectionError": "no connection to the proxy that the environment names",
    "ConnectTimeoutError": "no connection to the S3 server in time; check PRATIQUE_CONTENT_S3_ENDPOINT and the network",
    "ReadTimeoutError": "the S3 server did not answer in time",
    "ConnectionClosedError": "the S3 server closed the connection",
    "IncompleteReadError": "the S3 server closed the connection before the object had come whole",
    "ResponseStreamingError": "the S3 server closed the connection before the object had come whole",
    "ResponseParserError": NO_S3,
}
_CREDENTIAL_ERRORS = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "UnauthorizedSSOTokenError"}
)


def _unanswered(exc: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(exc):
        return UNVERIFIED
    for kind in type(exc).__mro__:
        if kind.__name__ in _UNANSWERED:
            return _UNANSWERED[kind.__name__]
    return f"it failed ({type(exc).__name__})"


def _error(exc: Exception) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _response(exc).get("Error", {})
    return found


def _response(exc: Exception) -> Mapping[str, Any]:
    """Empty where no answer came: timeouts have none, or None."""
    return getattr(exc, "response", None) or {}


def _headers(exc: Exception) -> Mapping[str, str]:
    headers: Mapping[str, str] = _response(exc).get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return headers


def _status(exc: Exception) -> int:
    return int(_response(exc).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _region(exc: Exception) -> str:
    said = _REGION.search(str(_error(exc).get("Message", "")))
    named = _error(exc).get("Region") or _headers(exc).get("x-amz-bucket-region") or (said and (said[1] or said[2]))
    return f", it expects {named}" if named and re.fullmatch(r"[a-z0-9-]{1,63}", str(named)) else ""


def _clocks(exc: Exception) -> str:
    there = _headers(exc).get("date", "")
    return f" (here {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, there {there[:40]})" if there else ""
