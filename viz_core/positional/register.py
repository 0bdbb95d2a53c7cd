"""The register of position schemes: every `SchemeEntry` of this package."""

from viz_core.positional.entry import SchemeEntry
from viz_core.runtime.registry import find_entries

SCHEMES = find_entries("viz_core.positional", SchemeEntry)
"""Every position scheme, in the order of every list."""

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
"""Every position scheme by its name, the one without positions as "none"."""

BY_TASK_NAME = {scheme.task_name: scheme for scheme in SCHEMES if scheme.task_name is not None}
"""The schemes that the learning tasks offer, by what these call them."""
