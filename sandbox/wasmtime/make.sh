#!/usr/bin/env bash
# make.sh test|bench: builds bin/drawbridge-wasmtime. "test" checks it and runs the tests of the sandbox on it, with the race
# detector too; "bench" runs the benchmarks of the sandbox on both engines.
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"
GO=${GO:-go}
root=$(realpath ../..)
export CGO_ENABLED=1
system=$($GO env GOOS)/$($GO env GOARCH)
compiler=$($GO env CC)
if [ "$system" != linux/amd64 ]; then
	echo "wasmtime: skipped: it is built for linux/amd64 only, and this is $system"
	exit
fi
if ! command -v "${compiler%% *}" >/dev/null; then
	echo "wasmtime: skipped: it needs a C compiler, and there is no $compiler"
	exit
fi
program=$root/bin/drawbridge-wasmtime
$GO build -trimpath -ldflags "-s -w" -o "$program" .
case ${1:?usage: make.sh test|bench} in
test)
	$GO mod tidy -diff
	$GO vet .
	$GO tool -modfile="$root/go.mod" staticcheck .
	$GO test -count=1 -timeout 5m .
	(cd "$root" && $GO test -count=1 -timeout 5m ./sandbox -worker-program "$program")
	$GO build -race -o "$program-race" .
	(cd "$root" && $GO test -count=1 -timeout 10m -race ./sandbox -worker-program "$program-race")
	rm "$program-race"
	;;
bench)
	cd "$root"
	for engine in wazero wasmtime; do
		echo "# $engine"
		arguments=()
		[ $engine = wazero ] || arguments=(-worker-program "$program")
		for runs in '(Run|Run32|RunAfterPause|InnerCall)$/400x' 'Loop$/20x' 'FirstRun/2x'; do
			$GO test -count=1 -timeout 20m -run '^$' -bench "Benchmark${runs%/*}" -benchtime "${runs#*/}" ./sandbox \
				"${arguments[@]}" | grep '^Benchmark'
		done
	done
	;;
esac
