#!/usr/bin/env bash
# Counts instructions with callgrind: steady where clocks are not. Needs valgrind.
#
#   benches/count.sh            prints the counts
#   benches/count.sh --check    fails if one has grown by more than 3 % against benches/instructions.txt
#   benches/count.sh --write    makes the counts the new baseline
#
# Counts of another compiler, or of a processor with other vector instructions, can't be compared: then the check says so
# and passes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly BASELINE=benches/instructions.txt
readonly GROWTH_PERCENT=3

command -v valgrind >/dev/null || { echo "valgrind is missing: apt-get install valgrind" >&2; exit 2; }
machine="$(rustc --version | cut -d' ' -f2) $(uname -m) $(grep -o -m1 -w avx2 /proc/cpuinfo || echo no-avx2)"
if [ "${1:-}" = --check ] && [ "$(head -n 1 "$BASELINE")" != "$machine" ]; then
    echo "the baseline is of \"$(head -n 1 "$BASELINE")\", this is \"$machine\": not compared"
    exit 0
fi

program=$(cargo bench --locked --bench count --no-run --message-format=json |
    grep '"kind":\["bench"\]' | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}

# Twice as much work, less the single: what one more costs, without the set-up.
each() {
    local once twice
    once=$(instructions "$1" "$2")
    twice=$(instructions "$1" "$((2 * $2))")
    printf '%s %d\n' "$1" "$(((twice - once) / $2))"
}

counts=$(each append-16 20000; each append-200 20000; each append-1024 20000; each append-escapes 20000; each fanout 40; each snapshot 20)

case "${1:-}" in
    "") echo "$counts" ;;
    --write) printf '%s\n%s\n' "$machine" "$counts" | tee "$BASELINE" ;;
    --check)
        failed=0
        while read -r what now; do
            before=$(sed -n "s/^$what //p" "$BASELINE")
            printf '%-16s %9d instructions, baseline %9d\n' "$what" "$now" "$before"
            if [ "$((now * 100))" -gt "$((before * (100 + GROWTH_PERCENT)))" ]; then
                echo "$what has grown by more than $GROWTH_PERCENT %. If that is worth it: benches/count.sh --write" >&2
                failed=1
            fi
        done <<<"$counts"
        exit $failed
        ;;
    *) echo "usage: benches/count.sh [--check|--write]" >&2; exit 2 ;;
esac
