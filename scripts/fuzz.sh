#!/bin/sh
# Run every fuzz target of the module for FUZZTIME, one after the other.
set -u

list=$(go test -list '^Fuzz' ./...) || {
	printf '%s\n' "$list"
	exit 1
}
# The output names the targets of a package, then says "ok PACKAGE".
targets=$(printf '%s\n' "$list" | awk '
	/^Fuzz/ { names[++n] = $1 }
	$1 == "ok" { for (i = 1; i <= n; i++) print $2, names[i]; n = 0 }')
[ -n "$targets" ] || {
	echo "no fuzz targets"
	exit 0
}
failed=0
while read -r package target; do
	echo "$package $target"
	go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" "$package" </dev/null || failed=1
done <<LIST
$targets
LIST
exit $failed
