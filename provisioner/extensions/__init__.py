"""What an installed extension brings for others to use: its APIs, what somebody may do with them, roles for them. Pure.

An extension is a BundleDeployment, seen by those who use what it installs.
"""

from provisioner.extensions.apis import (
    ApiVersion,
    Extension,
    ExtensionApi,
    UnknownApi,
    extensions_of,
    owner_named,
)
from provisioner.extensions.rights import VERBS, HeldVerbs, LocalRights, OwnRights, open_questions, rights_of
from provisioner.extensions.roles import (
    MANAGER,
    AccessLevel,
    binding_of,
    is_aggregated,
    is_as_wanted,
    is_ours,
    role_of,
    roles_in_use,
    selector_of,
)

__all__ = [
    "MANAGER",
    "VERBS",
    "AccessLevel",
    "ApiVersion",
    "Extension",
    "ExtensionApi",
    "HeldVerbs",
    "LocalRights",
    "OwnRights",
    "UnknownApi",
    "binding_of",
    "extensions_of",
    "is_aggregated",
    "is_as_wanted",
    "is_ours",
    "open_questions",
    "owner_named",
    "rights_of",
    "role_of",
    "roles_in_use",
    "selector_of",
]
