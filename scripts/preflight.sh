#!/bin/sh
# Say in one line each what this machine lacks, and what to type next.
# Usage: preflight.sh go|root|kernel ...
# Exit code 0 when everything asked for is there, else 1.
set -u

proc=${PREFLIGHT_PROC:-/proc}      # tests point it at a made-up /proc
modules=${PREFLIGHT_MODULES:-/lib/modules}
again=${PREFLIGHT_AGAIN:-make demo}
bad=0

# missing WHAT NEXT: report one lack and the way out of it.
missing() {
	echo "missing: $1. $2" >&2
	bad=1
}

# older HAVE WANT: is version HAVE ("6.1.0-30", "1.26.8") older than WANT ("6.1")?
older() {
	have_major=${1%%.*}
	rest=${1#*.}
	have_minor=${rest%%[!0-9]*}
	want_major=${2%%.*}
	want_minor=${2#*.}
	[ "$have_major" -lt "$want_major" ] ||
		{ [ "$have_major" -eq "$want_major" ] && [ "${have_minor:-0}" -lt "$want_minor" ]; }
}

check_go() {
	next="Get it at https://go.dev/dl/, unpack it to /usr/local/go, then type: $again"
	if ! command -v go >/dev/null 2>&1; then
		missing "Go 1.26 or later (no go command)" "$next"
		return
	fi
	version=$(go env GOVERSION 2>/dev/null)
	version=${version#go}
	case $version in
	[0-9]*.[0-9]*) ;;
	*)
		missing "Go 1.26 or later (the go command here answers '${version:-nothing}')" "$next"
		return
		;;
	esac
	if older "$version" 1.26; then
		missing "Go 1.26 or later (this is $version)" "$next"
	fi
}

# has_capability NUMBER: is it in this process's effective set? The shell's integers have 64 bits.
has_capability() {
	set_hex=$(sed -n 's/^CapEff:[[:space:]]*//p' "$proc/self/status" 2>/dev/null)
	[ -z "$set_hex" ] || [ $(((0x$set_hex >> $1) & 1)) -eq 1 ]
}

check_root() {
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null 2>&1 ||
			missing "root (and there is no sudo)" "Type: su -c '$again'"
		return
	fi
	lacking=
	has_capability 12 || lacking="$lacking CAP_NET_ADMIN"
	has_capability 13 || lacking="$lacking CAP_NET_RAW"
	has_capability 21 || lacking="$lacking CAP_SYS_ADMIN"
	has_capability 39 || lacking="$lacking CAP_BPF"
	[ -z "$lacking" ] ||
		missing "the capabilities$lacking (root without them: a container?)" "On the host itself, or in a privileged container, type: $again"
}

# has_veth: loaded or built in, or there to be loaded.
has_veth() {
	grep -q ' veth_xmit' "$proc/kallsyms" 2>/dev/null ||
		grep -q '/veth\.ko' "$modules/$1/modules.dep" "$modules/$1/modules.builtin" 2>/dev/null
}

check_kernel() {
	if [ "$(uname -s)" != Linux ]; then
		missing "Linux (this is $(uname -s))" "On a Linux machine, type: $again"
		return
	fi
	release=$(uname -r)
	if older "$release" 6.1; then
		missing "Linux 6.1 or later (this is $release)" "Boot a newer kernel (Debian 12 has one), then type: $again"
		return
	fi
	grep -q '^XDP ' "$proc/net/protocols" 2>/dev/null ||
		missing "AF_XDP in this kernel (CONFIG_XDP_SOCKETS)" "Boot your distribution's own kernel, then type: $again"
	[ -e "$proc/sys/kernel/unprivileged_bpf_disabled" ] ||
		missing "BPF in this kernel (CONFIG_BPF_SYSCALL)" "Boot your distribution's own kernel, then type: $again"
	[ -e "$proc/self/ns/net" ] ||
		missing "network namespaces in this kernel (CONFIG_NET_NS)" "Boot your distribution's own kernel, then type: $again"
	has_veth "$release" ||
		missing "the veth driver (CONFIG_VETH)" "Type: sudo modprobe veth && $again"
}

for what in "$@"; do
	case $what in
	go) check_go ;;
	root) check_root ;;
	kernel) check_kernel ;;
	*)
		echo "preflight: no such check: $what (go, root, kernel)" >&2
		exit 2
		;;
	esac
done
exit $bad
