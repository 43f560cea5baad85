#!/bin/sh
# Starts a throw-away Postgres server for tests, on a free port of the loopback interface, in a temporary directory.
#
#   postgres.sh                     print the server's URL and leave it running; how to end it is said on stderr
#   postgres.sh COMMAND [ARG...]    run the command with the URL in DRAWBRIDGE_TEST_POSTGRES, then end the server
#
# Without Postgres on this machine nothing is printed, the command runs without the variable, and the tests that would use
# it are skipped. (Debian: apt-get install --no-install-recommends postgresql)
set -eu

bin=
for dir in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin /opt/homebrew/opt/postgresql*/bin; do
	if [ -x "$dir/initdb" ]; then bin=$dir; fi
done
if [ -z "$bin" ]; then
	echo "no Postgres here: its tests are skipped" >&2
	if [ $# -gt 0 ]; then exec "$@"; fi
	exit 0
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/postgres.XXXXXX")
umask 077
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
printf '%s\n' "$password" >"$dir/password"

# The server refuses to run as root.
as_owner() { "$@"; }
if [ "$(id -u)" = 0 ]; then
	chown -R postgres "$dir"
	as_owner() { (cd "$dir" && setpriv --reuid postgres --regid postgres --init-groups "$@"); }
fi
stop() {
	as_owner "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
	rm -rf "$dir"
}
fail() {
	cat "$dir"/*.log >&2 2>/dev/null || true
	stop
	echo "$1" >&2
	exit 1
}

as_owner "$bin/initdb" -D "$dir/data" -U drawbridge -A scram-sha-256 --pwfile="$dir/password" -E UTF8 --no-locale --no-sync \
	>"$dir/initdb.log" 2>&1 </dev/null || fail "initdb did not work"

# A port that is taken makes the start fail, and the next one is tried.
port=
for number in $(od -An -N10 -tu2 /dev/urandom); do
	try=$((20000 + number % 12000))
	if as_owner "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 30 \
		-o "-F -p $try -c listen_addresses=127.0.0.1 -c unix_socket_directories=" start >/dev/null 2>&1 </dev/null; then
		port=$try
		break
	fi
done
[ -n "$port" ] || fail "the server did not start"

url="postgres://drawbridge:$password@127.0.0.1:$port/postgres?sslmode=disable"
if [ $# = 0 ]; then
	echo "$url"
	echo "to end it: kill $(head -n 1 "$dir/data/postmaster.pid"); rm -r $dir" >&2
	exit 0
fi

trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
DRAWBRIDGE_TEST_POSTGRES=$url "$@"
