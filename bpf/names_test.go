package bpf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// enumNames are a C enum's constants without prefix, in lower case, by value.
func enumNames(t *testing.T, spec *ebpf.CollectionSpec, name, prefix string) []string {
	t.Helper()
	var enum *btf.Enum
	must(t, spec.Types.TypeByName(name, &enum))
	var names []string
	for i, v := range enum.Values {
		if v.Value != uint64(i) {
			t.Errorf("%s is %d, want %d", v.Name, v.Value, i)
		}
		names = append(names, strings.ToLower(strings.TrimPrefix(v.Name, prefix)))
	}
	if last := names[len(names)-1]; last != "count" {
		t.Errorf("enum %s ends in %s", name, last)
	}
	return names[:len(names)-1]
}

// Go's names are the C enums' names, none missing, none in another place.
func TestNamesAreThoseOfC(t *testing.T) {
	steer, err := loadSteer()
	must(t, err)
	sink, err := loadSink()
	must(t, err)
	trace, err := loadTrace()
	must(t, err)
	for _, c := range []struct {
		spec         *ebpf.CollectionSpec
		enum, prefix string
		names        any
	}{
		{steer, "reason", "REASON_", reasons},
		{sink, "reason", "REASON_", reasons},
		{sink, "size_class", "SIZE_", sizeClasses},
		{sink, "protocol", "PROTOCOL_", protocols},
		{trace, "point", "POINT_", points},
	} {
		if got, want := fmt.Sprint(c.names), fmt.Sprint(enumNames(t, c.spec, c.enum, c.prefix)); got != want {
			t.Errorf("enum %s:\nGo %s\nC  %s", c.enum, got, want)
		}
	}
}

func TestMatchIsThatOfC(t *testing.T) {
	for c, match := range map[steerMatch]Match{
		steerMatchMATCH_TAG:   MatchTag,
		steerMatchMATCH_ALL:   MatchAll,
		steerMatchMATCH_PORTS: MatchPorts,
		steerMatchMATCH_VLANS: MatchVLANs,
		steerMatchMATCH_MACS:  MatchMACs,
	} {
		if Match(c) != match {
			t.Errorf("Go %b, C %b", match, c)
		}
	}
	spec, err := loadSteer()
	must(t, err)
	if n := spec.Variables["match_macs"].Size() / 8; n != maxMACs {
		t.Errorf("C takes %d MACs, Go %d", n, maxMACs)
	}
	if n := spec.Maps["sockets"].MaxEntries; n != MaxQueues {
		t.Errorf("C takes %d queues, Go %d", n, MaxQueues)
	}
}

// PassReasons are all reasons that are neither entry, nor note, nor ours.
func TestPassReasons(t *testing.T) {
	pass := map[Reason]bool{}
	for _, r := range PassReasons() {
		pass[r] = true
	}
	q := newQueueCounters(0, 1)
	for i, r := range reasons {
		q.Frames[r] = 1 << i
		ours := r == ReasonSeen || r == ReasonRedirected || r == ReasonDropped || r == ReasonNoMeta
		if pass[r] == ours {
			t.Errorf("%s: pass %v", r, pass[r])
		}
	}
	if want := uint64(1)<<len(reasons) - 1<<4; q.Passed() != want {
		t.Errorf("passed %b, want %b", q.Passed(), want)
	}
	if q.Seen() != 1 || q.Redirected() != 2 || q.Dropped() != 4 {
		t.Errorf("seen %d, redirected %d, dropped %d", q.Seen(), q.Redirected(), q.Dropped())
	}
}
