#!/usr/bin/env bash
# Real recorded tool calls, replayed in a hostile world, and one of the runs fact by fact. `make demo` runs this.
set -uo pipefail
corpus="$(dirname "${BASH_SOURCE[0]}")/corpus/turns.jsonl"

echo 'Recorded tool batches of several providers, through the kernel. For each honest delivery five hostile ones are'
echo 'injected: duplicated, stale, mismatched, unknown, reordered, conflicting. Calls are gated, and decided, by a coin.'
echo
replayed=$(turnlock replay "$corpus" --hostile 5 --decisions random --seed 7 --no-timing)
status=$?
printf '%s\n\n' "${replayed%$'\n'*}"

echo 'One of these runs as a timeline, with one hostile delivery for each honest one:'
echo
turnlock trace "$corpus" --run pydantic-ai/complex_agent_run --hostile 1 --decisions random --seed 7 || status=1

echo
printf '%s\n' "${replayed##*$'\n'}"
exit "$status"
