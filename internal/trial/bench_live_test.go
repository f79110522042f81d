package trial

import (
	"net"
	"os/exec"
	"strconv"
	"testing"

	"linerate/bpf"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
)

// liveSpec is a trial of the in-kernel engines without a bound.
func liveSpec(b *testing.B, lab *veth.Lab, queues, flows int, a Action) Spec {
	b.Helper()
	s := openSpec(b, engine.Live, lab, "64", queues)
	s.Tx.Engine, s.Rx.Engine, s.Action, s.Stream.Flows.Count = engine.Live, engine.XDP, a, flows
	return s
}

// BenchmarkLive sets the sender in the kernel beside xdp-trafficgen (xdp-tools
// 1.6.3 or later, where it is installed), both into XDP_DROP, and what verifying
// each frame and what many flows cost.
func BenchmarkLive(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	for _, threads := range []int{1, 2} {
		b.Run(strconv.Itoa(threads), func(b *testing.B) {
			lab := nettest.Lab(b, veth.Config{Queues: threads})
			names := []string{"live", "verified", "verified-64k-flows"}
			arms := []func() float64{
				func() float64 { return rate(b, liveSpec(b, lab, threads, 1, Drop)) },
				func() float64 { return rate(b, liveSpec(b, lab, threads, 1, Verify)) },
				func() float64 { return rate(b, manyFlows(liveSpec(b, lab, threads, 1, Verify))) },
			}
			if path, err := exec.LookPath("xdp-trafficgen"); err == nil {
				names = append(names, "trafficgen")
				arms = append(arms, func() float64 { return trafficgen(b, path, lab, threads) })
			}
			for range b.N {
				compare(b, names, arms)
			}
		})
	}
}

// manyFlows gives a trial 65,536 flows: 256 ports by 256 addresses.
func manyFlows(s Spec) Spec {
	f := &s.Stream.Flows
	f.Count = 0
	f.SrcPorts.Lo, f.SrcPorts.Hi = 1024, 1279
	f.SrcAddrs.Lo, f.SrcAddrs.Hi = addr("198.18.1.0"), addr("198.18.1.255")
	return s
}

// trafficgen sends with xdp-trafficgen into the same XDP_DROP.
func trafficgen(b *testing.B, path string, lab *veth.Lab, threads int) float64 {
	b.Helper()
	mac := openPort(b, lab.B()).MAC
	cmd := exec.Command(path, "udp", "-t", strconv.Itoa(threads), "-m", net.HardwareAddr(mac[:]).String(), veth.Interface)
	s := openSpec(b, engine.XSK, lab, "64", threads)
	s.Tx, s.Steer.Match, s.Steer.Run, s.Duration = nil, bpf.MatchAll, 0, benchWindow
	return receiving(b, s, cmd, lab)
}
