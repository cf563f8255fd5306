#!/usr/bin/env bash
# Debian's Chromium for the tests of the console, where it is not there yet. Another one: TURNLOCK_CHROMIUM=/path.
set -euo pipefail

for browser in "${TURNLOCK_CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [ -n "$browser" ] && command -v "$browser" >/dev/null; then
        exit 0
    fi
done
as_root=()
if [ "$(id -u)" != 0 ]; then
    as_root=(sudo --non-interactive)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
