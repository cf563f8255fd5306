"""Bring loopback up in a new network namespace, then become the command: tools/codex.py uses it.

unshare --map-root-user --net python tools/loopback_alone.py COMMAND [ARGUMENTS]
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
from typing import Final

GET_FLAGS: Final = 0x8913
SET_FLAGS: Final = 0x8914
"""SIOCGIFFLAGS and SIOCSIFFLAGS of Linux."""
UP: Final = 1


def main() -> None:
    """Set the flag, as `ip link set lo up` does where it is installed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        _, flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, GET_FLAGS, request))
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 – the command that was named


if __name__ == "__main__":
    main()
