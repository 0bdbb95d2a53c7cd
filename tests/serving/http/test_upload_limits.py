"""Uploads that nobody uses, too many at once, more than is stored."""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from serving.http.access import Message, Refusals
from serving.http.upload_limits import StoredFiles, UploadLimits
from tests.serving.http.sockets import asynchronous
from ui.streamlit_internals import sessions

pytestmark = pytest.mark.attack("uploads")
MB = 2**20


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    manager = MemoryUploadedFileManager("/upload")
    monkeypatch.setattr(sessions, "get_instance", lambda: SimpleNamespace(uploaded_file_mgr=manager))
    return manager


class Host:
    """A host behind the middleware: a file arrives when it is let go."""

    def __init__(self, files: MemoryUploadedFileManager, max_transfers: int = 2, session_bytes: int = 3 * MB) -> None:
        self.away: Counter[str] = Counter()
        self.files = files
        self.go = asyncio.Event()
        stored = StoredFiles(sessions.upload_bytes, sessions.trim_uploads, lambda session, _scope: session != "theirs")
        refusals = Refusals("<{}>".format, lambda why: self.away.update([why]))
        self.app = UploadLimits(self._take, max_transfers, session_bytes, 6 * MB, 8 * MB, stored, refusals)

    async def _take(self, scope: Message, _receive: Any, send: Any) -> None:
        await self.go.wait()
        session, file = scope["path"].split("/")[-2:]
        if file == "none-left":
            raise OSError(errno.ENOSPC, "No space left on device")
        data = bytes(scope.get("size", MB))
        self.files.add_file(session, UploadedFileRec(file, "x.png", "image/png", data))
        await send({"type": "http.response.start", "status": 204})

    async def put(
        self, session: str, file: str, size: int = MB, method: str = "PUT", address: str = ""
    ) -> tuple[int, bytes]:
        got: list[Message] = []

        async def take(message: Message) -> None:
            got.append(message)

        path = f"/_stcore/upload_file/{session}/{file}"
        scope = {"type": "http", "method": method, "path": path, "size": size, "client": (address or session, 1)}
        await self.app(scope, asyncio.Queue().get, take)
        return got[0]["status"], got[-1].get("body", b"")


@asynchronous
async def test_three_hundred_that_nobody_uses(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    host.go.set()
    assert {(await host.put("a", str(number)))[0] for number in range(300)} == {204}
    assert list(files.file_storage["a"]) == ["297", "298", "299"], "the newest stay"
    assert host.away == {"old-uploads": 297}
    host = Host(files, session_bytes=MB)
    host.go.set()
    for number in range(300):
        await host.put("small", str(number), size=0)
    assert len(files.file_storage["small"]) == 16


@asynchronous
async def test_more_than_all_sessions_may_keep_is_refused_in_words(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    host.go.set()
    answers = [await host.put(f"s{number}", "f", size=2 * MB) for number in range(6)]
    assert answers == [(204, b"")] * 4 + [(503, b"<too-many-uploads>")] * 2
    files.remove_session_files("s0")
    assert (await host.put("s9", "f"))[0] == 204, "who leaves makes room"


@asynchronous
async def test_one_address_may_not_keep_all_there_is(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    host.go.set()
    answers = [await host.put(f"s{number}", "f", size=2 * MB, address="10.0.0.1") for number in range(4)]
    assert answers == [(204, b"")] * 3 + [(503, b"<too-many-uploads>")]
    assert (await host.put("s9", "f", address="10.0.0.2"))[0] == 204, "others have their share"
    files.remove_session_files("s0")
    assert (await host.put("s5", "f", address="10.0.0.1"))[0] == 204, "who leaves makes room"
    assert host.away == {"too-many-uploads": 1}
    for session in list(files.file_storage):
        files.remove_session_files(session)
    await host.put("new", "f")
    assert set(host.app._senders) == {"new"}, "and is forgotten"


@asynchronous
async def test_too_many_on_the_way_at_once(files: MemoryUploadedFileManager) -> None:
    host = Host(files)
    arriving = [asyncio.create_task(host.put(f"s{n}", "f", size=3 * MB, address="10.0.0.1")) for n in range(4)]
    await asyncio.sleep(0)
    host.go.set()
    assert [(await task)[0] for task in arriving] == [204, 204, 503, 503]
    assert await host.put("late", "f", address="10.0.0.1") == (503, b"<too-many-uploads>"), "they count for an address"
    assert (await host.put("late", "f"))[0] == 204


@asynchronous
async def test_a_full_disk_is_a_sentence_and_other_requests_pass(files: MemoryUploadedFileManager) -> None:
    host = Host(files, max_transfers=1)
    host.go.set()
    assert await host.put("a", "none-left") == (507, b"<no-space>")
    assert (await host.put("a", "b"))[0] == 204, "nothing is held by what failed"
    assert host.away == {"no-space": 1}
    host = Host(files, max_transfers=0)
    host.go.set()
    assert (await host.put("a", "b", method="DELETE"))[0] == 204


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@asynchronous
async def test_who_knows_a_session_of_somebody_else_cannot_change_its_files(
    method: str, files: MemoryUploadedFileManager
) -> None:
    host = Host(files)
    host.go.set()
    assert await host.put("theirs", "1", method=method) == (403, b"<foreign-session>")
    assert host.away == {"foreign-session": 1}
    assert (await host.put("mine", "1", method=method))[0] == 204
