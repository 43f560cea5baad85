#!/usr/bin/env bash
# make.sh WORKDIR UPDATE: builds the supervisor for amd64 and arm64 in WORKDIR and compares both with the files of this
# directory. With UPDATE not empty it writes them anew.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
work=${1:?usage: make.sh WORKDIR UPDATE}
version=19.1.7
for command in clang-19 ld.lld-19; do
	if ! command -v "$command" >/dev/null; then
		echo "make.sh: missing: $command; on Debian: apt-get install --no-install-recommends clang-19 lld-19" >&2
		exit 1
	fi
	if ! "$command" --version | grep -qF " $version"; then
		echo "make.sh: $command is not version $version, so its result may differ: $("$command" --version | head -n 1)" >&2
	fi
done
mkdir -p "$work"
cd "$here" # paths are not in the result, and the order of the files is fixed
for target in amd64:x86_64:-mno-sse arm64:aarch64:-mgeneral-regs-only; do
	IFS=: read -r name machine registers <<<"$target"
	objects=()
	for source in top tree program namespaces basics; do
		clang-19 --target="$machine-linux-gnu" -std=c11 -Wall -Wextra -Werror -Os "$registers" -ffreestanding -fno-pic \
			-fno-stack-protector -fno-asynchronous-unwind-tables -fomit-frame-pointer -fno-ident -fno-strict-aliasing \
			-c -o "$work/$source-$name.o" "$source.c"
		objects+=("$work/$source-$name.o")
	done
	ld.lld-19 -static --build-id=none -z noexecstack -z norelro -z noseparate-code --strip-all \
		-o "$work/supervisor_$name" "${objects[@]}"
done
if [ -n "${2:-}" ]; then
	cp "$work"/supervisor_{amd64,arm64} .
fi
for name in amd64 arm64; do
	cmp "supervisor_$name" "$work/supervisor_$name"
	echo "supervisor_$name: $(sha256sum <"supervisor_$name" | cut -d' ' -f1), $(wc -c <"supervisor_$name") bytes, as built"
done
