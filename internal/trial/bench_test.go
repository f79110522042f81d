package trial

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/bpf"
	"linerate/internal/budget"
	"linerate/internal/engine"
	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/wire"
)

// The benchmarks here measure ratios within one run, alternating what they
// compare: the machines they run on are noisy, and veth is bound by the
// kernel. Run them with -benchtime 1x.

const (
	benchRounds = 11
	benchWindow = time.Second
)

// openSpec is a trial without a bound, from two workers' cores into XDP_DROP.
func openSpec(b *testing.B, eng engine.Name, lab *veth.Lab, frame string, queues int) Spec {
	b.Helper()
	s := spec(b, eng, lab.A(), lab.B())
	var err error
	if s.Stream.Sizes, err = wire.ParseSizes(frame); err != nil {
		b.Fatal(err)
	}
	s.Rate, s.Count, s.Duration = wire.Rate{Kind: wire.RateMax}, 0, benchWindow
	s.MaxLoss = budget.AnyLoss()
	s.Action, s.Steer.Stamp = Drop, false
	s.Tx.Queues, s.Rx.Queues = nil, nil
	for q := range queues {
		s.Tx.Queues = append(s.Tx.Queues, engine.Queue{ID: q, CPU: q})
		s.Rx.Queues = append(s.Rx.Queues, engine.Queue{ID: q, CPU: 1 - q%2})
	}
	return s
}

// rate is the frames per second that the receiving device saw in one trial.
func rate(b *testing.B, s Spec) float64 {
	b.Helper()
	o, err := Run(context.Background(), s, nil)
	if err != nil {
		b.Fatal(err)
	}
	var n uint64
	for _, r := range o.Rows {
		if r.Row == budget.RowDeviceRx && r.Frames != nil {
			n += *r.Frames
		}
	}
	return float64(n) / o.Measured.Seconds()
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// compare runs the arms in turn and reports the medians of the first arm's
// ratio to each other arm, round by round.
func compare(b *testing.B, names []string, arms []func() float64) {
	b.Helper()
	rates := make([][]float64, len(arms))
	for range benchRounds {
		for i, arm := range arms {
			rates[i] = append(rates[i], arm())
		}
	}
	for i := range arms {
		if i > 0 {
			ratios := make([]float64, benchRounds)
			for k := range ratios {
				ratios[k] = rates[0][k] / rates[i][k]
			}
			b.ReportMetric(median(ratios), names[0]+"/"+names[i])
		}
	}
	for i := range arms {
		b.ReportMetric(median(rates[i])/1e3, names[i]+"-kpps")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkVethSend sets our sender beside asavie/xdp and, where it is
// installed, DPDK's testpmd over net_af_xdp, one queue into XDP_DROP.
func BenchmarkVethSend(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	for _, frame := range []string{"64", "1518"} {
		b.Run(frame, func(b *testing.B) {
			lab := nettest.Lab(b, veth.Config{})
			names := []string{"xsk", "asavie"}
			arms := []func() float64{
				func() float64 { return rate(b, openSpec(b, engine.XSK, lab, frame, 1)) },
				func() float64 { return rate(b, openSpec(b, engine.Asavie, lab, frame, 1)) },
			}
			if path, err := exec.LookPath("dpdk-testpmd"); err == nil {
				names = append(names, "testpmd")
				arms = append(arms, func() float64 { return testpmd(b, path, lab, frame) })
			}
			for range b.N {
				compare(b, names, arms)
			}
		})
	}
}

// testpmd sends with DPDK's AF_XDP driver into the same XDP_DROP, from the same
// core as our sender.
func testpmd(b *testing.B, path string, lab *veth.Lab, frame string) float64 {
	b.Helper()
	length := map[string]string{"64": "60", "1518": "1514"}[frame]
	cmd := exec.Command(path, "--no-huge", "-m", "1024", "--no-pci", "-l", "0,1", "--main-lcore", "1", "--file-prefix", "linerate-bench",
		"--vdev", "net_af_xdp0,iface="+veth.Interface+",start_queue=0,queue_count=1", "--",
		"--forward-mode=txonly", "--txpkts="+length, "--nb-cores=1", "--auto-start", "--total-num-mbufs=16384",
		"--no-mlockall", "--stats-period", "60")
	s := openSpec(b, engine.XSK, lab, frame, 1)
	s.Tx, s.Steer.Match, s.Steer.Run, s.Duration = nil, bpf.MatchAll, 0, benchWindow
	return receiving(b, s, cmd, lab)
}

// receiving is the rate at the receiver while somebody else sends.
func receiving(b *testing.B, s Spec, sender *exec.Cmd, lab *veth.Lab) float64 {
	b.Helper()
	sender.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.Duration = time.Minute // until it is stopped
	done, attached := make(chan struct{}), make(chan struct{})
	s.Attached = func() error { close(attached); return nil } // it resets counters
	go func() { defer close(done); _, _ = Run(ctx, s, nil) }()
	<-attached
	if err := lab.NS(veth.A).Do(sender.Start); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = sender.Process.Signal(unix.SIGINT)
		_ = sender.Wait()
	}()
	time.Sleep(1500 * time.Millisecond) // its start
	before, err := s.Rx.Port.Counters()
	if err != nil {
		b.Fatal(err)
	}
	time.Sleep(benchWindow)
	after, err := s.Rx.Port.Counters()
	if err != nil {
		b.Fatal(err)
	}
	cancel()
	<-done
	d, _ := after.DeviceRx().Sub(before.DeviceRx())
	if d.Frames == nil {
		b.Fatal("the receiver does not count")
	}
	return float64(*d.Frames) / after.At.Sub(before.At).Seconds()
}

// BenchmarkVethQueues is what a second queue on a second core is worth.
func BenchmarkVethQueues(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	for _, frame := range []string{"64", "1518"} {
		b.Run(frame, func(b *testing.B) {
			lab := nettest.Lab(b, veth.Config{Queues: 2})
			for range b.N {
				compare(b, []string{"2q", "1q"}, []func() float64{
					func() float64 { return rate(b, openSpec(b, engine.XSK, lab, frame, 2)) },
					func() float64 { return rate(b, openSpec(b, engine.XSK, lab, frame, 1)) },
				})
			}
		})
	}
}

// BenchmarkVerify is what verifying every frame costs a sink that is already
// overloaded by two sending queues.
func BenchmarkVerify(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(b, veth.Config{Queues: 2})
	arm := func(a Action) func() float64 {
		return func() float64 {
			s := openSpec(b, engine.XSK, lab, "64", 2)
			s.Action = a
			s.Steer.Stamp = true
			o, err := Run(context.Background(), s, nil)
			if err != nil {
				b.Fatal(err)
			}
			var taken, full uint64
			for _, q := range o.Rx.Queues {
				taken += q.Taken
				full += q.RingFull
			}
			if a == Count && full == 0 {
				b.Log("the counting sink lost nothing: this load does not tell")
			}
			return float64(taken) / o.Measured.Seconds()
		}
	}
	for range b.N {
		compare(b, []string{"verify", "count"}, []func() float64{arm(Verify), arm(Count)})
	}
}

// BenchmarkPacing is how near the offered rate comes to the asked one over 10 s,
// and how even the gaps are at the receiver's XDP.
func BenchmarkPacing(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	for _, pps := range []string{"1kpps", "100kpps", "500kpps"} {
		b.Run(pps, func(b *testing.B) {
			lab := nettest.Lab(b, veth.Config{})
			for range b.N {
				s := openSpec(b, engine.XSK, lab, "64", 1)
				var err error
				if s.Rate, err = wire.ParseRate(pps); err != nil {
					b.Fatal(err)
				}
				s.Action, s.Steer.Stamp, s.Duration, s.RingSize = Verify, true, 10*time.Second, 1<<14
				o, err := Run(context.Background(), s, nil)
				if err != nil {
					b.Fatal(err)
				}
				asked := *o.Rate.OfferedPPS
				b.ReportMetric(100*(*o.Rate.TxPPS/asked-1), "error-%")
				b.ReportMetric(float64(o.Rx.Gaps.P50)*asked/1e9, "p50gap/nominal")
				b.ReportMetric(float64(o.Rx.Gaps.P99)/1e3, "p99gap-us")
				b.ReportMetric(float64(o.Rx.Gaps.Max)/1e3, "maxgap-us")
				b.ReportMetric(float64(o.Rate.LongestStall)/1e3, "longest-stall-us")
				b.ReportMetric(float64(o.Rate.Overfull), "overfull-windows")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// BenchmarkIdleSink is the CPU that a sink takes with nothing to receive.
func BenchmarkIdleSink(b *testing.B) {
	nettest.Require(b, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(b, veth.Config{})
	for range b.N {
		s := openSpec(b, engine.XSK, lab, "64", 1)
		s.Tx, s.Action, s.AnyRun, s.Steer.Run, s.Duration = nil, Verify, true, 0, 5*time.Second
		before := ownCPU(b)
		if _, err := Run(context.Background(), s, nil); err != nil && !strings.Contains(err.Error(), "tail") {
			b.Fatal(err)
		}
		b.ReportMetric(100*(ownCPU(b)-before).Seconds()/5, "core-%")
		b.ReportMetric(0, "ns/op")
	}
}

// ownCPU is the CPU time of this process; softirq is not in it, and there is
// none without traffic.
func ownCPU(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
