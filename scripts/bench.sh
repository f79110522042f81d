#!/bin/sh
# Run the benchmarks: what one frame costs in user space, against a fake kernel. No root, no interface.
set -u

packages=$(go list ./... | grep -E '^linerate/(xsk|internal/(wire|frame|pace|meter|budget|method|report))$')
[ -n "$packages" ] || {
	echo "no packages with benchmarks"
	exit 0
}
# One package at a time: two would share the cores, and each would measure the other.
# shellcheck disable=SC2086 # a list of import paths
exec go test -p 1 -run '^$' -bench . -benchmem -benchtime "${BENCHTIME:-1s}" $packages
