package bpf

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// xdpActions are the names of enum xdp_action (linux/bpf.h).
var xdpActions = [...]string{"XDP_ABORTED", "XDP_DROP", "XDP_PASS", "XDP_TX", "XDP_REDIRECT"}

func compareCounts(a, b TraceCount) int {
	return cmp.Or(
		cmp.Compare(a.Netns, b.Netns),
		cmp.Compare(a.Ifindex, b.Ifindex),
		cmp.Compare(a.Point, b.Point),
		cmp.Compare(a.Code, b.Code),
	)
}

// codeName names a code in the kernel's words.
func (t *Trace) codeName(p Point, code int) string {
	name := ""
	switch p {
	case PointKfreeSkb:
		name = t.dropReason(uint32(code))
	case PointXDPException:
		if code >= 0 && code < len(xdpActions) {
			name = xdpActions[code]
		}
	case PointNetDevXmit:
		name = map[int]string{0: "NETDEV_TX_OK", 16: "NETDEV_TX_BUSY"}[code]
	default:
		name = unix.ErrnoName(unix.Errno(code))
	}
	if name == "" {
		return strconv.Itoa(code)
	}
	return name
}

// dropReason names a drop reason of the running kernel: their numbers change
// from one version to the next.
func (t *Trace) dropReason(code uint32) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = dropReasons()
	}
	return t.names[code]
}

// dropReasons reads enum skb_drop_reason from the kernel's own type
// information; empty when it is not to be had.
func dropReasons() map[uint32]string {
	names := map[uint32]string{}
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return names
	}
	var enum *btf.Enum
	if err := spec.TypeByName("skb_drop_reason", &enum); err != nil {
		return names
	}
	for _, v := range enum.Values {
		name := strings.TrimPrefix(v.Name, "SKB_DROP_REASON_")
		names[uint32(v.Value)] = strings.TrimPrefix(name, "SKB_")
	}
	return names
}
