package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"linerate/internal/budget"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/report"
)

// runDoc runs one command line with --json and reads its document.
func runDoc(t *testing.T, args ...string) (int, report.Run) {
	t.Helper()
	code, stdout, stderr := invoke(t, append(args, "--json")...)
	doc, err := report.DecodeRun([]byte(stdout))
	if err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, stdout, stderr)
	}
	return code, doc
}

// rowOf adds up the frames of one row at one boundary.
func rowOf(doc report.Run, b budget.Boundary, name string) (n uint64, known bool) {
	for _, r := range doc.Budget {
		if r.Row == name && r.Boundary == b && r.Frames != nil {
			n, known = n+*r.Frames, true
		}
	}
	return n, known
}

// Through the kernel of a router: the next hop is found, asked and used, what
// comes out with a smaller TTL is verified, and nothing is unexplained.
func TestThroughRouter(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for name, c := range map[string]struct{ dst, src, via, frame string }{
		"IPv4": {nettest.RouterB4, nettest.RouterA4, nettest.RouterToA4, "64,128,1518"},
		"IPv6": {nettest.RouterB6, nettest.RouterA6, nettest.RouterToA6, "84,128,1518"},
	} {
		t.Run(name, func(t *testing.T) {
			l := nettest.Router(t, veth.Config{})
			code, doc := runDoc(t, "run", "--tx", l.A(), "--rx", l.B(), "--dst-ip", c.dst, "--frame", c.frame,
				"-n", "3000", "--rate", "5kpps", "--flows", "16", "--max-rate-error", "100")
			if code != exitPassed || doc.Frames.Received == nil || *doc.Frames.Received != 3000 || doc.Frames.Unexplained == nil || *doc.Frames.Unexplained != 0 {
				t.Errorf("exit %d, verdict %s: %s", code, doc.Verdict, frames(doc))
			}
			spec, _ := doc.Spec.(map[string]any)
			hop, _ := spec["next_hop"].(map[string]any)
			if hop["gateway"] != c.via || hop["mac"] == nil || hop["mac"] != spec["dst_mac"] || spec["src_ip"] != c.src || !strings.Contains(hop["route"].(string), "via "+c.via) {
				t.Errorf("next hop %v to %v from %v", hop, spec["dst_mac"], spec["src_ip"])
			}
			if n, known := rowOf(doc, budget.Wire, budget.RowDUTLost); !known || n != 0 {
				t.Errorf("%s %d, known %v", budget.RowDUTLost, n, known)
			}
		})
	}
}

func frames(doc report.Run) string {
	b, err := json.MarshalIndent(map[string]any{"frames": doc.Frames, "budget": doc.Budget, "warnings": doc.Warnings}, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Sources and destinations that no kernel owns: both ends answer for them, the
// router finds them, and the answers are no part of the offered load.
func TestThroughRouterBetweenEmulatedAddresses(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	for _, c := range []struct{ src, dst, frame string }{
		{"198.18.0.10-198.18.0.13", "198.18.1.50-198.18.1.53", "64"},
		{"fd00:a::10-fd00:a::13", "fd00:b::50-fd00:b::53", "84"},
	} {
		l := nettest.Router(t, veth.Config{})
		args := []string{"run", "--tx", l.A(), "--rx", l.B(), "--src-ip", c.src, "--dst-ip", c.dst, "--frame", c.frame,
			"-n", "3000", "--rate", "5kpps", "--flows", "16", "--max-rate-error", "100"}
		code, doc := runDoc(t, args...)
		if code != exitPassed || *doc.Frames.Received != 3000 || *doc.Frames.Unexplained != 0 {
			t.Errorf("%s: exit %d, verdict %s: %s", c.dst, code, doc.Verdict, frames(doc))
		}
		said := ""
		for _, w := range doc.Warnings {
			if w.Code == report.WarnAnswered && strings.HasPrefix(w.Text, l.B()) {
				said = w.Text
			}
		}
		if !strings.Contains(said, "answered 4 ARP requests") && !strings.Contains(said, "4 neighbour solicitations") {
			t.Errorf("%s: says %q", c.dst, said)
		}
		l = nettest.Router(t, veth.Config{}) // one that knows nothing yet
		args[2], args[4] = l.A(), l.B()
		code, doc = runDoc(t, append(args, "--answer=false", "-n", "100")...)
		if code == exitPassed || doc.Frames.Lost == nil || *doc.Frames.Lost == 0 || *doc.Frames.Unexplained != 0 {
			t.Errorf("%s, nobody answers: exit %d: %s", c.dst, code, frames(doc))
		}
	}
}

// A router that loses: what it lost is lost, has a row of its own, and leaves
// nothing unexplained. A policer of the kernel does the losing.
func TestRouterThatLoses(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	l := nettest.Router(t, veth.Config{})
	err := l.NS(veth.Middle).Do(func() error {
		out, err := netlink.LinkByName(veth.MiddleB)
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(&netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: out.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate: 100_000, Limit: 3000, Buffer: 20_000})
	})
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--tx", l.A(), "--rx", l.B(), "--dst-ip", nettest.RouterB4, "-n", "3000", "--rate", "5kpps", "--settle", "1s", "--max-rate-error", "100"}
	code, doc := runDoc(t, append(args, "--max-loss", "any")...)
	lost, _ := rowOf(doc, budget.Wire, budget.RowDUTLost)
	if code != exitPassed || doc.Frames.Lost == nil || *doc.Frames.Lost == 0 || lost < *doc.Frames.Lost || *doc.Frames.Unexplained != 0 {
		t.Errorf("exit %d, %s %d: %s", code, budget.RowDUTLost, lost, frames(doc))
	}
	if code, doc := runDoc(t, args...); code != exitFailed || doc.Verdict != budget.Fail {
		t.Errorf("with no loss allowed: exit %d, verdict %s", code, doc.Verdict)
	}
}

// No route, no answer, two ways: exit 2, the address, the route and what to type.
func TestNextHopErrors(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	l := nettest.Router(t, veth.Config{})
	err := l.NS(veth.A).Do(func() error {
		link, err := netlink.LinkByName(veth.Interface)
		if err != nil {
			return err
		}
		dst, _ := netlink.ParseIPNet("192.0.2.0/24")
		return netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Gw: []byte{198, 18, 0, 99}})
	})
	if err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string][]string{
		"run --tx " + l.A() + " --rx " + l.B() + " --dst-ip 192.0.2.1":                         {"198.18.0.99", "192.0.2.0/24 via 198.18.0.99 dev lr0", "does not answer", "--dst-mac"},
		"blast " + l.A() + " --dst-ip 203.0.113.1":                                             {"203.0.113.1", "unreachable", "ip route add 203.0.113.1 dev lr0"},
		"run --tx " + l.A() + " --rx " + l.B() + " --dst-ip 198.18.0.250-198.18.1.3 --flows 2": {"another way", "--dst-mac"},
	} {
		code, _, stderr := invoke(t, append(strings.Fields(args), "-n", "10")...)
		if code != exitUsage {
			t.Errorf("%s: exit %d", args, code)
		}
		for _, s := range says {
			if !strings.Contains(stderr, s) {
				t.Errorf("%s: says %q, want %q in it", args, stderr, s)
			}
		}
	}
}
