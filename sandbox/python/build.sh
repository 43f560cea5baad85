#!/usr/bin/env bash
# build.sh WORKDIR: builds the Python interpreter of the sandbox.
#
# Input:  Debian's source packages of python3.13 and zlib, and its wasi-libc, each checked against SHA256SUMS.sources.
# Output: WORKDIR/out/code.wasm    the interpreter as a WebAssembly reactor, without its memory
#         WORKDIR/out/memory.img   its memory after start-up, with the standard library
#
# Needs Debian bookworm with: clang-19 lld-19 llvm-19 libclang-rt-19-dev-wasm32 dpkg-dev gcc make, and Go. The wasm-opt
# program must not be on PATH: clang runs it when it links. Every step is skipped when its result exists.
set -euo pipefail

here=$(dirname "$(realpath "$0")")
work=$(realpath -m "${1:?usage: build.sh WORKDIR}")
llvm=19
jobs=${JOBS:-$(nproc)}

python_version=3.13.5-2+deb13u5
zlib_version=1:1.3.dfsg+really1.3.1-1
wasi_version=0.0~git20241209.574b88d-2

mkdir -p "$work"/{src,out,apt/partial}
cd "$work"
export SOURCE_DATE_EPOCH=1700000000 LC_ALL=C.UTF-8 PYTHONHASHSEED=0
if command -v wasm-opt >/dev/null; then
	echo "build.sh: remove wasm-opt from PATH: clang would run it" >&2
	exit 1
fi

# 1. Sources. apt has lists of its own here, so that the system's lists stay as they are.
if [ ! -d src/python ]; then
	mirror=$(awk '/^URIs:/{print $2; exit}' /etc/apt/sources.list.d/debian.sources)
	key="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
	printf 'deb-src %s %s trixie main\ndeb %s %s trixie main\n' "$key" "$mirror" "$key" "$mirror" >apt.list
	apt=(-o Dir::Etc::sourcelist="$work/apt.list" -o Dir::Etc::sourceparts=/dev/null
		-o Dir::State::lists="$work/apt" -o APT::Sandbox::User=root -o APT::Architectures::=amd64)
	apt-get "${apt[@]}" -qq update
	(
		cd src
		apt-get "${apt[@]}" -qq source --download-only "python3.13=$python_version" "zlib=$zlib_version"
		apt-get "${apt[@]}" -qq download "wasi-libc=$wasi_version"
		sha256sum --quiet -c "$here/SHA256SUMS.sources"
		dpkg-deb -x wasi-libc_*.deb wasi
		dpkg-source --no-check -x zlib_*.dsc zlib >/dev/null
		dpkg-source --no-check -x python3.13_*.dsc python >/dev/null
	)
fi

# 2. A sysroot with the headers and libraries of WASI only, never the host's.
mkdir -p sysroot/include sysroot/lib
ln -sfn "$work/src/wasi/usr/include/wasm32-wasi" sysroot/include/wasm32-wasi
ln -sfn "$work/src/wasi/usr/lib/wasm32-wasi" sysroot/lib/wasm32-wasi

# 3. A native Python of the same version: it compiles the standard library and generates sources.
native=$work/native/python
if [ ! -x "$native" ]; then
	rm -rf native
	mkdir native
	(
		cd native
		../src/python/configure -q --disable-test-modules --without-ensurepip >configure.log 2>&1
		make -j"$jobs" python sharedmods >make.log 2>&1
	)
fi

target="--target=wasm32-wasi --sysroot=$work/sysroot -ffile-prefix-map=$work=/build"
export CC="clang-$llvm $target" CXX="clang++-$llvm $target" CPP="clang-$llvm $target -E"
export AR=llvm-ar-$llvm RANLIB=llvm-ranlib-$llvm LDSHARED=wasm-ld-$llvm
export PKG_CONFIG_PATH="" PKG_CONFIG_LIBDIR=/nonexistent

# 4. zlib
if [ ! -f zlib/lib/libz.a ]; then
	rm -rf zlib-build
	cp -r src/zlib zlib-build
	(
		cd zlib-build
		CFLAGS=-O2 CHOST=wasm32 ./configure --static >configure.log 2>&1
		make -j"$jobs" libz.a >make.log 2>&1
	)
	mkdir -p zlib/{lib,include}
	cp zlib-build/libz.a zlib/lib/
	cp zlib-build/zlib.h zlib-build/zconf.h zlib/include/
fi

# 5. libpython. wasi-libc's CLOCK_* are pointers, which clang reports as an error unless told otherwise. configure is
# called by a relative path, so that the work directory is not written into the binary.
if [ ! -f build/libpython3.13.a ]; then
	rm -rf build
	mkdir build
	(
		cd build
		export CONFIG_SITE="$work/src/python/Tools/wasm/config.site-wasm32-wasi"
		export CFLAGS="-I$work/zlib/include -Wno-int-conversion" CPPFLAGS="-I$work/zlib/include" \
			LDFLAGS="-L$work/zlib/lib" OPT="-O2 -DNDEBUG -fwrapv -Wall"
		../src/python/configure -q --host=wasm32-unknown-wasi --build=x86_64-linux-gnu --with-build-python="$native" \
			--prefix=/usr/local --disable-ipv6 --disable-test-modules --without-ensurepip --with-pymalloc \
			ac_cv_header_bzlib_h=no >configure.log 2>&1
		make -j"$jobs" libpython3.13.a Modules/_decimal/libmpdec/libmpdec.a Modules/expat/libexpat.a \
			Modules/_hacl/libHacl_Hash_SHA2.a >make.log 2>&1
	)
fi

# 6. The reactor: reactor.c and libpython. Its stack is 4 MiB, below the data: an overflow traps.
$CC -O2 -Isrc/python/Include -Ibuild -c "$here/reactor.c" -o build/reactor.o
# shellcheck disable=SC2046 # one word per archive
$CC -mexec-model=reactor build/reactor.o build/libpython3.13.a \
	$(find build/Modules -name '*.a' | LC_ALL=C sort) -Lzlib/lib -lz \
	-lwasi-emulated-signal -lwasi-emulated-getpid -lwasi-emulated-process-clocks -ldl -lm \
	-z stack-size=4194304 -Wl,--stack-first -Wl,--initial-memory=16777216 -Wl,--strip-all \
	-Wl,--export=__stack_pointer -o out/python.wasm

# 7. The standard library as one file, then the memory after start-up.
rm -rf stdlib
mkdir stdlib
cp -r src/python/Lib/. stdlib/
rm -rf stdlib/test
find stdlib -depth \( -name __pycache__ -o -name test -o -name tests \) -exec rm -rf {} +
cp "$here/boot.py" stdlib/_drawbridge_boot.py
cp "$here/jsonpath.py" stdlib/_drawbridge_jsonpath.py
"$native" "$here/pack_stdlib.py" src/python/Lib stdlib/stdlib.blob
(
	unset CC CXX CPP AR RANLIB CFLAGS CPPFLAGS LDFLAGS
	cd "$here/../.."
	CGO_ENABLED=0 go run ./internal/tools/pythonsnapshot -module "$work/out/python.wasm" -stdlib "$work/stdlib" \
		-out "$work/out"
)
(cd out && sha256sum code.wasm memory.img)
