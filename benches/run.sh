#!/usr/bin/env bash
# Reproduces the end-to-end table of PERFORMANCE.md: the server on one core, the load on another.
#
#   benches/run.sh                      everything; about a quarter of an hour
#   benches/run.sh --only saturated     scenarios whose name contains that
#   benches/run.sh --seconds 1 --rounds 1
#
# Peers that are not installed are skipped and named. On Debian: apt-get install redis-server nginx libnginx-mod-nchan nodejs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v taskset >/dev/null || { echo "taskset is missing: apt-get install util-linux" >&2; exit 2; }
[ "$(nproc)" -ge 2 ] || { echo "two processors are needed: one for the server, one for the load" >&2; exit 2; }
ulimit -n "$(ulimit -Hn)"
[ "$(ulimit -n)" -ge 12000 ] || { echo "raise the limit of open files to 12,000 (ulimit -n)" >&2; exit 2; }

cargo build --release --locked --bin rejoin
program=$(cargo bench --bench end_to_end --no-run --message-format=json |
    grep '"kind":\["bench"\]' | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
exec taskset -c 1 "$program" --rejoin target/release/rejoin --server-core 0 "$@"
