"""What people do: one function an action, keywords only. Each asks Kubernetes for the right before its transaction."""

from approvals.services.acknowledging import Acknowledgement, acknowledgements, collisions, to_acknowledge
from approvals.services.chat import issue_link_code, link_chat_account, unlink_chat_account
from approvals.services.clusters import Replacing, register_cluster
from approvals.services.deployments import (
    ask_again,
    change_deployment,
    create_deployment,
    delete_deployment,
    pause_deployment,
    rollback_deployment,
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
from approvals.services.policies import rights_of_policy, save_policy
from approvals.services.proxied import caller_of_proxy, sign_in_by_proxy
from approvals.services.reviews import review, withdraw
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
from approvals.services.signing_in import Browser, Proved, Rights, prove, rights_to_tell, sign_in, sign_in_with_password
from approvals.services.tokens import create_api_token, prove_api_token, revoke_api_token
from approvals.services.unseen import page_of, why_not_unseen
from approvals.services.waivers import Waiver

__all__ = [
    "DISCOVERY",
    "Acknowledgement",
    "Browser",
    "Proved",
    "Replacing",
    "Rights",
    "Rotation",
    "Waiver",
    "acknowledgements",
    "ask_again",
    "awaited_proxy",
    "caller_of",
    "caller_of_id_token",
    "caller_of_proxy",
    "change_deployment",
    "collisions",
    "create_api_token",
    "create_deployment",
    "delete_deployment",
    "end_other_sessions",
    "end_session",
    "end_sessions_of_issuer",
    "forget_ended",
    "forget_identity",
    "issue_link_code",
    "link_chat_account",
    "link_identity",
    "map_identity",
    "page_of",
    "pause_deployment",
    "prove",
    "prove_api_token",
    "register_cluster",
    "reinstate_revision",
    "renew_grant",
    "review",
    "revoke_api_token",
    "revoke_revision",
    "rights_of_policy",
    "rights_to_tell",
    "rollback_deployment",
    "rotate_keys",
    "save_policy",
    "sharing_identity",
    "sign_in",
    "sign_in_by_proxy",
    "sign_in_with_issuer",
    "sign_in_with_password",
    "sign_out",
    "to_acknowledge",
    "unlink_chat_account",
    "unlink_identity",
    "why_not_unseen",
    "withdraw",
]
