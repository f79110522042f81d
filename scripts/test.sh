#!/bin/sh
# Run every test of the module: compiled as the user, run as root where they need it.
# The packages without a kernel, and xsk with its rings, also run under the race detector if there is a C compiler.
set -u

pure='^linerate/internal/(wire|frame|pace|meter|budget|method|report)$'
rings='^linerate/xsk$'
rules='^linerate/internal$'

all=$(go list ./...) || exit 1
failed=0

# run PACKAGES FLAGS...: test the packages, if any; a failure does not stop what follows.
run() {
	packages=$1
	shift
	[ -n "$packages" ] || return 0
	# shellcheck disable=SC2086 # a list of import paths
	go test "$@" $packages || failed=1
}

# only PATTERN, except PATTERN: the packages that match, that do not.
only() { printf '%s\n' "$all" | grep -E "$1"; }
except() { printf '%s\n' "$all" | grep -Ev "$1"; }

cgo=0
race=
if command -v "${CC:-gcc}" >/dev/null 2>&1; then
	cgo=1
	race=-race
elif [ "${TEST_NO_SKIP:-}" = 1 ]; then
	echo "missing: a C compiler for the race detector. Type: apt-get install gcc libc6-dev" >&2
	exit 1
else
	echo "note: no C compiler, so no race detector" >&2
fi

# The test binaries are built here and only they run as root.
as_root=-exec=
if [ "$(id -u)" -ne 0 ]; then
	as_root="-exec=sudo -E env 'PATH=$PATH'"
fi

CGO_ENABLED=0 run "$(only "$rules")" -count=1
CGO_ENABLED=$cgo run "$(only "$pure")" $race
if [ -n "$race" ]; then
	CGO_ENABLED=1 run "$(only "$rings")" -race -count=1 "$as_root"
fi
# Interfaces, namespaces and CPUs belong to the whole machine: one package at a time.
CGO_ENABLED=0 run "$(except "$pure|$rules")" -count=1 -p 1 "$as_root"
exit $failed
