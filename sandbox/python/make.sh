#!/usr/bin/env bash
# make.sh WORKDIR UPDATE: builds the interpreter in WORKDIR and compares it with SHA256SUMS. With UPDATE not empty it
# writes the files of this directory anew.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
work=${1:?usage: make.sh WORKDIR UPDATE}
missing=()
for command in clang-19 wasm-ld-19 llvm-ar-19 dpkg-source gcc make zstd; do
	command -v "$command" >/dev/null || missing+=("$command")
done
if [ ${#missing[@]} -gt 0 ]; then
	echo "make.sh: missing: ${missing[*]}; on Debian: apt-get install --no-install-recommends clang-19 lld-19 llvm-19" \
		"libclang-rt-19-dev-wasm32 dpkg-dev gcc make zstd" >&2
	exit 1
fi
"$here/build.sh" "$work"
cd "$work/out"
if [ -z "${2:-}" ]; then
	sha256sum -c "$here/SHA256SUMS"
	exit
fi
sha256sum code.wasm memory.img >"$here/SHA256SUMS"
for file in code.wasm memory.img; do
	zstd -q -f --ultra -22 -T1 "$file" -o "$here/$file.zst"
done
