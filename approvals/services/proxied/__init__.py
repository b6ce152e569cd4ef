"""People whom a proxy in front has signed in (security-rules.md S01, S25).

`people` says which account a proxy's word enters and on which clusters it counts, `sessions` begins a session by it and
has it said again with each request.
"""

from approvals.services.proxied.people import caller_of_proxy
from approvals.services.proxied.sessions import is_still_said, sign_in_by_proxy, sign_out_url_of, title_of

__all__ = ["caller_of_proxy", "is_still_said", "sign_in_by_proxy", "sign_out_url_of", "title_of"]
