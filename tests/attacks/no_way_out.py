"""A Python in which no process can reach another machine: `sitecustomize` for a server under test.

Whatever is tried is written to the file that ATTEMPTS names, and fails.
"""

import os
import sys
import traceback

_LOCAL = ("", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::")


def _stay(event: str, given: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = given[1][0] if isinstance(given[1], tuple) else ""  # a path is a socket of this machine
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = given[0] or ""
    else:
        return
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name not in _LOCAL:
        with open(os.environ["ATTEMPTS"], "a", encoding="utf-8") as file:
            file.write(f"{event} {name} from {traceback.format_stack(limit=8)[:-1]}\n")
        raise OSError(f"no way out to {name}")


if __name__ == "sitecustomize":  # a test that imports the file to copy it keeps its ways out
    sys.addaudithook(_stay)
