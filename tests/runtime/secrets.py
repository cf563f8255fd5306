"""A cipher for tests, of the standard library alone: good for nothing else."""

from __future__ import annotations

import hashlib
import hmac
import secrets

import attrs


@attrs.frozen
class TestCipher:
    """Encrypts with a stream of hashes."""

    __test__ = False

    key: bytes = b"the key of these tests"

    def seal(self, data: bytes, *, aad: bytes) -> bytes:
        nonce = secrets.token_bytes(16)
        sealed = self._masked(data, nonce)
        return nonce + self._tag(nonce + sealed, aad) + sealed

    def open(self, sealed: bytes, *, aad: bytes) -> bytes:
        nonce, tag, rest = sealed[:16], sealed[16:48], sealed[48:]
        if not hmac.compare_digest(tag, self._tag(nonce + rest, aad)):
            raise ValueError("not of this key and place")
        return self._masked(rest, nonce)

    def _tag(self, data: bytes, aad: bytes) -> bytes:
        parts = len(aad).to_bytes(8, "big") + aad + data
        return hmac.new(self.key, parts, hashlib.sha256).digest()

    def _masked(self, data: bytes, nonce: bytes) -> bytes:
        blocks = (
            hashlib.sha256(self.key + nonce + number.to_bytes(8, "big")).digest()
            for number in range(len(data) // 32 + 1)
        )
        return bytes(one ^ other for one, other in zip(data, b"".join(blocks), strict=False))
