"""The kinds of sources that we have ourselves, a line each."""

from __future__ import annotations

from provisioner.source.files import ConfigMapSource, LocalSource
from provisioner.source.git import GitSource
from provisioner.source.http import HttpSource
from provisioner.source.image import ImageSource
from provisioner.source.source_type import SourceType
from provisioner.values import DEPENDENCY

# Those that a spec may name, in the order in which people are offered them.
SOURCE_TYPES: tuple[type[SourceType], ...] = (ImageSource, GitSource, HttpSource, ConfigMapSource)
# No plug-in has one of these names.
RESERVED_KINDS = frozenset([*(source_type.kind for source_type in SOURCE_TYPES), LocalSource.kind, DEPENDENCY])
