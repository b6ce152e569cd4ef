"""What people do: one function an action, keywords only. Each asks Kubernetes for the right before its transaction."""

from approvals.services.acknowledging import Acknowledgement, acknowledgements, to_acknowledge
from approvals.services.chat import issue_link_code, link_chat_account, unlink_chat_account
from approvals.services.clusters import register_cluster
from approvals.services.deployments import (
    ask_again,
    change_deployment,
    create_deployment,
    delete_deployment,
    pause_deployment,
    rollback_deployment,
)
from approvals.services.encryption import Rotation, rotate_keys
from approvals.services.identity import create_api_token, map_identity, revoke_api_token, sign_in_with_token
from approvals.services.policies import save_policy
from approvals.services.reviews import review, withdraw
from approvals.services.revisions import reinstate_revision, revoke_revision
from approvals.services.unseen import page_of, why_not_unseen
from approvals.services.waivers import Waiver

__all__ = [
    "Acknowledgement",
    "Rotation",
    "Waiver",
    "acknowledgements",
    "ask_again",
    "change_deployment",
    "create_api_token",
    "create_deployment",
    "delete_deployment",
    "issue_link_code",
    "link_chat_account",
    "map_identity",
    "page_of",
    "pause_deployment",
    "register_cluster",
    "reinstate_revision",
    "review",
    "revoke_api_token",
    "revoke_revision",
    "rollback_deployment",
    "rotate_keys",
    "save_policy",
    "sign_in_with_token",
    "to_acknowledge",
    "unlink_chat_account",
    "why_not_unseen",
    "withdraw",
]
