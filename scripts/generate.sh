#!/bin/sh
# Compile the BPF programs anew with the pinned clang.
# Usage: generate.sh          write the generated files
#        generate.sh --check  fail if that changes any file; skip, with a note, without the pinned clang
set -eu

clang=${CLANG:?set by the Makefile}
want_clang=${CLANG_VERSION:?set by the Makefile}
want_libbpf=${LIBBPF_VERSION:?set by the Makefile}
cd "$(dirname "$0")/.."

# lacking: print what keeps the output from being the same everywhere.
lacking() {
	have=$("$clang" --version 2>/dev/null | sed -n 's/.*Debian clang version \([0-9.]*\).*/\1/p')
	[ "$have" = "$want_clang" ] || echo "$clang $want_clang of Debian (here: ${have:-none})"
	# bpf2go strips the objects with the llvm-strip beside that clang.
	command -v "llvm-strip${clang#clang}" >/dev/null 2>&1 || echo "llvm-strip${clang#clang}"
	# shellcheck disable=SC2016 # a format of dpkg-query
	have=$(dpkg-query -W -f '${Version}' libbpf-dev 2>/dev/null || true)
	[ "$have" = "$want_libbpf" ] || echo "libbpf-dev $want_libbpf (here: ${have:-none})"
}

# sums: one line for each file that generating could change.
sums() {
	find . -type f -not -path './.git' -not -path './.git/*' -not -path './bin/*' -not -path ./linerate \
		-exec sha256sum {} + | sort -k 2
}

lack=$(lacking)
if [ -n "$lack" ]; then
	lack=$(printf '%s' "$lack" | tr '\n' ';')
	next="Type (Debian 12): apt-get install clang-19 llvm-19 libbpf-dev linux-libc-dev"
	if [ "${1:-}" = --check ] && [ "${TEST_NO_SKIP:-}" != 1 ]; then
		echo "note: generated files not checked: no $lack. $next" >&2
		exit 0
	fi
	echo "missing: $lack. $next" >&2
	exit 1
fi

if [ "${1:-}" != --check ]; then
	exec go generate ./...
fi
before=$(mktemp)
after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
sums >"$before"
go generate ./...
sums >"$after"
if ! diff "$before" "$after" >&2; then
	echo "generated files were not up to date; they are now. Type: git add the files above, and commit" >&2
	exit 1
fi
