#!/usr/bin/env bash
# Draws where the time goes, as an SVG under target/flamegraph.
#
#   ./flamegraph.sh append|fanout|snapshot   a benchmark, built and run under the profiler
#   ./flamegraph.sh server [PID]             a running server, under the load that you put on it meanwhile
#
# SECONDS_MAX (default 15) is how long it looks. Needs Linux's perf and inferno.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${SECONDS_MAX:-15}
out=target/flamegraph

give_up() { printf 'flamegraph.sh: %s\n' "$*" >&2; exit 2; }
usage() { give_up "usage: ./flamegraph.sh append|fanout|snapshot, or ./flamegraph.sh server [PID]"; }

check_tools() {
    command -v perf >/dev/null ||
        give_up "perf is missing: apt-get install linux-perf (Debian), linux-tools-generic (Ubuntu)"
    local tool
    for tool in inferno-collapse-perf inferno-flamegraph; do
        command -v "$tool" >/dev/null || give_up "$tool is missing: cargo install inferno"
    done
    perf record --quiet --output /dev/null -- true 2>/dev/null ||
        give_up "perf may not record here: sysctl kernel.perf_event_paranoid=1 (as root; in a container, on its host)"
}

# The one running server, or the one that was named.
server_pid() {
    local pid=${1:-}
    [ -n "$pid" ] || pid=$(pgrep -x rejoin || true)
    [[ $pid =~ ^[0-9]+$ ]] || give_up "name the server to look at: ./flamegraph.sh server PID (found: ${pid:-none})"
    kill -0 "$pid" 2>/dev/null || give_up "no process $pid that this user may look at"
    printf '%s' "$pid"
}

# Builds a benchmark and prints the path of its program.
bench_program() {
    cargo bench --bench "$1" --no-run --message-format=json |
        grep '"kind":\["bench"\]' | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

# DWARF unwinding needs no special build; 16 KiB of stack are enough for this code's depth.
record() { perf record --quiet --freq 997 --call-graph dwarf,16384 --output "$out/$target.perf" "$@"; }

target=${1:-}
case $target in
append | fanout | snapshot)
    [ $# -eq 1 ] || usage
    check_tools
    mkdir -p "$out"
    program=$(bench_program "$target")
    [ -x "$program" ] || give_up "there is no benchmark called $target"
    record -- "$program" --bench --profile-time "$seconds"
    ;;
server)
    [ $# -le 2 ] || usage
    check_tools
    mkdir -p "$out"
    pid=$(server_pid "${2:-}")
    printf 'Looking at process %s for %s s.\n' "$pid" "$seconds"
    record --pid "$pid" -- sleep "$seconds"
    ;;
*) usage ;;
esac

perf script --no-inline --input "$out/$target.perf" 2>/dev/null | inferno-collapse-perf >"$out/$target.folded"
[ -s "$out/$target.folded" ] || give_up "no samples: was there any load?"
inferno-flamegraph --title "rejoin: $target" "$out/$target.folded" >"$out/$target.svg"
printf 'Written: %s\n' "$out/$target.svg"
