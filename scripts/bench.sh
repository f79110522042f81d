#!/bin/sh
# Run the benchmarks: what one frame costs in user space, against a fake kernel; then, as root, ratios over veth pairs.
set -u

packages=$(go list ./... | grep -E '^linerate/(xsk|internal/(wire|frame|pace|meter|budget|method|report))$')
failed=0
# One package at a time: two would share the cores, and each would measure the other.
if [ -n "$packages" ]; then
	# shellcheck disable=SC2086 # a list of import paths
	go test -p 1 -run '^$' -bench . -benchmem -benchtime "${BENCHTIME:-1s}" $packages || failed=1
fi

as_root=-exec=
if [ "$(id -u)" -ne 0 ]; then
	as_root="-exec=sudo -E env 'PATH=$PATH'"
fi
# Each benchmark alternates what it compares and prints medians and their ratio: once is enough.
# dpdk-testpmd (Debian: dpdk) is compared with where it is installed.
go test -run '^$' -bench . -benchtime 1x -timeout 60m "$as_root" ./internal/trial || failed=1
exit $failed
