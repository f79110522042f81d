#!/bin/sh
# All that can be said of the sources without running the program.
# Goes on after a failure, so that one run shows everything; the exit code is 1 if anything failed.
set -u

failed=0

# told NAME CODE: say how a check went.
told() {
	if [ "$2" -eq 0 ]; then
		echo "ok    $1"
	else
		echo "FAIL  $1"
		failed=1
	fi
}

formatted() {
	wrong=$(gofmt -l .) || return 1
	[ -z "$wrong" ] && return 0
	echo "not formatted. Type: gofmt -w $(printf '%s' "$wrong" | tr '\n' ' ')" >&2
	return 1
}

shell_scripts() {
	if command -v shellcheck >/dev/null 2>&1; then
		shellcheck scripts/*.sh .ci/run
	elif [ "${TEST_NO_SKIP:-}" = 1 ]; then
		echo "missing: shellcheck. Type: apt-get install shellcheck" >&2
		return 1
	else
		echo "note: shell scripts not checked: no shellcheck. Type: apt-get install shellcheck" >&2
	fi
}

formatted
told gofmt $?
go vet ./...
told vet $?
scripts/golangci.sh run ./...
told lint $?
go test -count=1 ./internal
told rules $?
scripts/generate.sh --check
told generate $?
shell_scripts
told shellcheck $?
exit $failed
