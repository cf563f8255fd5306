#!/usr/bin/env bash
# Real recorded tool calls: replayed in a hostile world, then played on the runtime, which is killed and goes on.
# Then two agents and a person in a chat: a payment is approved from another process, and their host is killed.
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

# The second act: worlds.
office="$here/world"
export LEDGER="$work/payments.jsonl"
export TURNLOCK_DB="$work/world.db"

say '7. A world of two agents. A person speaks to one, and a host performs them until it waits for people'
must 0 turnlock world new office --from "$office/world.toml"
must 0 turnlock world say office bills '@alice please pay Ada 250' --as carla --id m1
must 3 turnlock world run office --host-file "$office/host.toml" --until-idle 2>&1

say '8. Another process approves what it was shown. A host pays, and is killed before it can say so'
# The host has the run when it asks, and is killed when the approval was answered: each time the same is to be seen.
: >"$work/host.log"  # there when it is looked into, however slowly the host begins
KILL_AFTER=1 KILL_WHEN="$work/answered" turnlock world run office --host-file "$office/host.toml" >"$work/host.log" 2>&1 &
host=$!
while ! read -r -a approve < <(grep -o 'turnlock world approve.*' "$work/host.log" | tr -d "'"); do
  if ! kill -0 "$host"; then break; fi
  sleep 0.1
done
must 0 "${approve[@]}" --as carla
touch "$work/answered"
{ must 137 wait "$host"; } 2>/dev/null
must 0 turnlock world show office

say '9. Another host. It is in doubt, so the ledger is asked; the payment is not made again'
must 0 turnlock world run office --host-file "$office/host.toml" --until-idle 2>&1

say '10. The ledger: one line for each payment that was really made'
cat "$LEDGER"
paid=$(wc -l <"$LEDGER")
if [ "$paid" -ne 1 ]; then
  printf 'FAILED: %s payments were made, not 1\n' "$paid" | tee -a "$failed"
fi

say '11. The chat, and the runs of its members, drawn from the journal'
must 0 turnlock diagram world office bills
must 0 turnlock check --db "$TURNLOCK_DB"

echo
if [ -e "$failed" ]; then
  cat "$failed"
  exit 1
fi
echo 'OK: killed twice, nothing lost, nothing run twice'
