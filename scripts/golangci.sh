#!/bin/sh
# Install or run golangci-lint in exactly the version that the Makefile pins.
# Usage: golangci.sh install | golangci.sh ARGS... (passed on)
set -eu

version=${GOLANGCI_VERSION:?set by the Makefile}
here=$(cd "$(dirname "$0")/.." && pwd)

# pinned FILE: is it golangci-lint in the pinned version?
pinned() {
	[ -x "$1" ] && "$1" version 2>/dev/null | grep -q "version ${version#v} "
}

# find_it: print the first binary of that version: ours, then where go install puts it.
find_it() {
	for dir in "$here/bin" "$(go env GOBIN)" "$(go env GOPATH)/bin"; do
		if pinned "$dir/golangci-lint"; then
			echo "$dir/golangci-lint"
			return
		fi
	done
	return 1
}

if ! lint=$(find_it); then
	echo "note: building golangci-lint $version into ./bin: this takes some minutes, once" >&2
	GOBIN=$here/bin CGO_ENABLED=0 go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
	lint=$(find_it)
fi
if [ "${1:-}" = install ]; then
	echo "$lint"
	exit 0
fi
exec "$lint" "$@"
