"""What Streamlit keeps for its visitors, and how much of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from streamlit.runtime import get_instance

if TYPE_CHECKING:
    from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

_LEAST = 2**16  # bytes that a file counts for, however small: it has a name and a record too


def sessions() -> int:
    """How many visitors are connected."""
    found: Any = get_instance().stats_mgr.get_stats(["active_sessions"])
    return sum(int(stat.value) for stats in found.values() for stat in stats)


def upload_bytes() -> int:
    """Of all that is uploaded and kept."""
    return sum(
        max(_LEAST, len(file.data)) for kept in list(_uploads().file_storage.values()) for file in list(kept.values())
    )


def tidy_uploads(session: str, most: int) -> int:
    """Let go of a session's oldest files until those that stay have at most so many bytes; how many went."""
    files = list(_uploads().file_storage.get(session, {}).values())
    gone = 0
    while files and sum(max(_LEAST, len(file.data)) for file in files) > most:
        _uploads().remove_file(session, files.pop(0).file_id)
        gone += 1
    return gone


def forget_those_who_left() -> None:
    """End the sessions that nobody came back to. Streamlit does so when the next visitor leaves; none may."""
    manager: Any = get_instance()._session_mgr
    manager._session_storage._cache.expire()


def _uploads() -> MemoryUploadedFileManager:
    return cast("MemoryUploadedFileManager", get_instance().uploaded_file_mgr)
