#!/usr/bin/env bash
# Counts instructions per event with callgrind: steady where clocks are not. Needs valgrind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v valgrind >/dev/null || { echo "valgrind is missing: apt-get install valgrind" >&2; exit 2; }
program=$(cargo bench --bench count --no-run --message-format=json |
    grep '"kind":\["bench"\]' | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}

# Twice as much work, less the single: what one more event costs, without the set-up.
per_event() {
    local once twice
    once=$(instructions "$1" "$2")
    twice=$(instructions "$1" "$((2 * $2))")
    printf '%-12s %9.0f instructions per %s\n' "$1" "$(((twice - once) / $2))" "$3"
}

per_event append-16 20000 event
per_event append-200 20000 event
per_event append-1024 20000 event
per_event fanout 40 "event to 1,000 observers"
