#!/usr/bin/env bash
# Real recorded tool calls: replayed in a hostile world, then played on the runtime, which is killed and goes on.
# `make demo` runs this. It needs no network, and no key.
set -uo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
corpus="$here/corpus/turns.jsonl"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LEDGER="$work/ledger.jsonl"
db="$work/agent.db"
failed="$work/failed" # a file: steps in a pipe have no other way to tell

say() { printf '\n\033[1m%s\033[0m\n\n' "$1"; }

# A step that must end with this status.
must() {
  local wanted=$1
  shift
  "$@"
  local ended=$?
  if [ "$ended" -ne "$wanted" ]; then
    printf 'FAILED: it ended with %s, not %s: %s\n' "$ended" "$wanted" "$*" | tee -a "$failed"
  fi
}

say '1. Recorded tool batches of several providers, with five hostile deliveries for each honest one'
must 0 turnlock replay "$corpus" --hostile 5 --decisions random --seed 7 --no-timing | tail -1

agent=(turnlock run --record "$corpus#tau-bench/airline-0.2" --tools "$here/tools.py" --db "$db" --run flight --yes)

say '2. An agent books a flight (recorded, tau-bench). Its process is killed right after the booking'
must 137 env KILL_AFTER=1 "${agent[@]}" 2>&1 # 128 + 9

say '3. What the journal knows: the booking was started, and nobody has said how it ended'
must 0 turnlock show flight --db "$db" --no-facts

say '4. The same command again. It is in doubt, so the ledger is asked; the tool is not run again'
must 0 "${agent[@]}" 2>&1

say '5. The ledger: one line for each booking that was really made'
cat "$LEDGER"
made=$(wc -l <"$LEDGER")
if [ "$made" -ne 1 ]; then
  printf 'FAILED: %s bookings were made, not 1\n' "$made" | tee -a "$failed"
fi

say '6. The whole run, fact by fact, and whether these facts can have happened'
must 0 turnlock show flight --db "$db"
must 0 turnlock check --db "$db"

echo
if [ -e "$failed" ]; then
  cat "$failed"
  exit 1
fi
echo 'OK: killed once, nothing lost, nothing run twice'
