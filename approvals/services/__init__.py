"""What people do: one function an action, keywords only. Each asks Kubernetes for the right before its transaction."""

from approvals.gate.explanation import explain as explain_evaluations
from approvals.gate.unseen_limits import why_not_unseen
from approvals.services.approval_terms import Acknowledgement, acknowledgements, collisions, page_of, to_acknowledge
from approvals.services.break_glass import break_glass, give_review, review_afterwards
from approvals.services.change_stops import end_stop, stop_changes
from approvals.services.chat import issue_link_code, link_chat_account, unlink_chat_account
from approvals.services.clusters import Replacing, register_cluster, remove_cluster
from approvals.services.command_line_tokens import (
    CommandLineCode,
    CommandLineIssuer,
    command_line_issuers,
    sign_in_command_line,
)
from approvals.services.comparisons import (
    AskedComparison,
    ComparedLines,
    ComparisonQuestion,
    bundle_to_install,
    check_may_compare,
    cluster_to_compare_on,
    compare_bundles,
    find_known_comparison,
    format_offered,
    read_comparison_lines,
    read_comparison_result,
    resolve_comparison,
)
from approvals.services.deciding_objects import change_object, create_object, delete_object
from approvals.services.dependencies import DependencyOffer, find_dependencies, make_dependencies
from approvals.services.deployments import (
    ask_again,
    change_deployment,
    create_deployment,
    create_deployments,
    delete_deployment,
    pause_deployment,
    rollback_deployment,
    rotate_deployment,
)
from approvals.services.encryption import Rotation, rotate_keys
from approvals.services.identity import forget_identity, link_identity, map_identity, unlink_identity
from approvals.services.issuers import (
    DISCOVERY,
    caller_of_id_token,
    end_sessions_of_issuer,
    renew_grant,
    sign_in_with_issuer,
)
from approvals.services.own_views import mark_news_read, mark_viewed, remove_view, save_view
from approvals.services.policies import (
    disable_policy,
    may_change_policy,
    may_write_policies,
    rights_of_policy,
    save_policy,
)
from approvals.services.policy_replays import PolicyReplay, ReplayRow, read_document, replay_policy
from approvals.services.proxy_people import caller_of_proxy, sign_in_by_proxy
from approvals.services.reviews import dismiss, review, set_apply_at, withdraw
from approvals.services.revisions import reinstate_revision, revoke_revision
from approvals.services.sessions import (
    awaited_proxy,
    caller_of,
    end_other_sessions,
    end_session,
    forget_ended,
    sharing_identity,
    sign_out,
)
from approvals.services.sign_ins import (
    Browser,
    Proved,
    Rights,
    caller_by_admission,
    known_as,
    prove,
    rights_to_tell,
    sign_in,
    sign_in_with_password,
)
from approvals.services.tokens import create_api_token, end_api_token, prove_api_token, revoke_api_token
from approvals.services.waivers import Waiver

__all__ = [
    "DISCOVERY",
    "Acknowledgement",
    "AskedComparison",
    "Browser",
    "CommandLineCode",
    "CommandLineIssuer",
    "ComparedLines",
    "ComparisonQuestion",
    "DependencyOffer",
    "PolicyReplay",
    "Proved",
    "Replacing",
    "ReplayRow",
    "Rights",
    "Rotation",
    "Waiver",
    "acknowledgements",
    "ask_again",
    "awaited_proxy",
    "break_glass",
    "bundle_to_install",
    "caller_by_admission",
    "caller_of",
    "caller_of_id_token",
    "caller_of_proxy",
    "change_deployment",
    "change_object",
    "check_may_compare",
    "cluster_to_compare_on",
    "collisions",
    "command_line_issuers",
    "compare_bundles",
    "create_api_token",
    "create_deployment",
    "create_deployments",
    "create_object",
    "delete_deployment",
    "delete_object",
    "disable_policy",
    "dismiss",
    "end_api_token",
    "end_other_sessions",
    "end_session",
    "end_sessions_of_issuer",
    "end_stop",
    "explain_evaluations",
    "find_dependencies",
    "find_known_comparison",
    "forget_ended",
    "forget_identity",
    "format_offered",
    "give_review",
    "issue_link_code",
    "known_as",
    "link_chat_account",
    "link_identity",
    "make_dependencies",
    "map_identity",
    "mark_news_read",
    "mark_viewed",
    "may_change_policy",
    "may_write_policies",
    "page_of",
    "pause_deployment",
    "prove",
    "prove_api_token",
    "read_comparison_lines",
    "read_comparison_result",
    "read_document",
    "register_cluster",
    "reinstate_revision",
    "remove_cluster",
    "remove_view",
    "renew_grant",
    "replay_policy",
    "resolve_comparison",
    "review",
    "review_afterwards",
    "revoke_api_token",
    "revoke_revision",
    "rights_of_policy",
    "rights_to_tell",
    "rollback_deployment",
    "rotate_deployment",
    "rotate_keys",
    "save_policy",
    "save_view",
    "set_apply_at",
    "sharing_identity",
    "sign_in",
    "sign_in_by_proxy",
    "sign_in_command_line",
    "sign_in_with_issuer",
    "sign_in_with_password",
    "sign_out",
    "stop_changes",
    "to_acknowledge",
    "unlink_chat_account",
    "unlink_identity",
    "why_not_unseen",
    "withdraw",
]
