package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
)

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestEndsWithContext: an offer without an end, and one that has not begun.
func TestEndsWithContext(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 2, 0)
			r, s := b.receiver(t, n, RxOptions{}), b.sender(t, n)
			a := start(t, r, Watch{Verify: true, AnyRun: true})
			tx, err := send(t, withTimeout(t, 100*time.Millisecond), s, offer(t, "64", 2, Offer{PPS: 10_000}))
			if err != nil || tx.sum().Submitted == 0 || tx.sum().EndFrames != 0 {
				t.Errorf("%+v, %v", tx.sum(), err)
			}
			o := offer(t, "64", 2, Offer{Count: 1000})
			o.Start += int64(time.Hour)
			over, err := send(t, withTimeout(t, 0), s, o)
			if err != nil || over.sum().Offered != 0 || over.FirstNs != 0 {
				t.Errorf("%+v, %v", over.sum(), err)
			}
			if rx := a.end(t); a.err != nil || rx.Adopted != testRun || r.Ended() {
				t.Errorf("adopted %x, %v, ended %v", rx.Adopted, a.err, r.Ended())
			}
			a = start(t, r, Watch{Verify: true, Run: testRun})
			o = offer(t, "64", 2, Offer{PPS: 1, Count: 1, EndMarks: true}) // fewer than workers
			o.Start -= int64(time.Second)
			one, err := send(t, context.Background(), s, o)
			if err != nil || one.sum().Submitted-one.sum().EndFrames != 1 || one.sum().EndFrames != 2*endMarks {
				t.Errorf("%+v, %v", one.sum(), err)
			}
			until(t, "END", r.Ended)
			if rx := a.end(t); a.err != nil || rx.Totals.Distinct != 1 || rx.Adopted != 0 {
				t.Errorf("%+v, %v", rx.Totals, a.err)
			}
		})
	}
}

// TestOwnLinkDown in mid-run: the sender goes on, says so, and ends in time
// with what stands in its ring.
func TestOwnLinkDown(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 1, 0)
			r, s := b.receiver(t, n, RxOptions{}), b.sender(t, n)
			a := start(t, r, Watch{Verify: true, Run: testRun})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				for taken(r.Counters()) == 0 && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				b.set(t, veth.A, false)
				time.Sleep(100 * time.Millisecond)
				cancel()
			}()
			tx, err := send(t, ctx, s, offer(t, "64", 1, Offer{PPS: 50_000, EndMarks: true}))
			if err != nil {
				t.Fatal(err)
			}
			q := tx.sum()
			if q.NetDown == 0 || q.Held == 0 || q.Completed+q.Held != q.Submitted {
				t.Errorf("%+v", q)
			}
			a.end(t)
			if a.err != nil {
				t.Error(a.err)
			}
			if _, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{Count: 1})); err == nil || !strings.Contains(err.Error(), ErrUnderWay.Error()) {
				t.Errorf("the next trial: %v", err)
			}
		})
	}
}

// TestPeerDown: without a carrier the device refuses every frame. The receiver
// on the port that went down waits for it to come back.
func TestPeerDown(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 1, 0)
			r, s := b.receiver(t, n, RxOptions{}), b.sender(t, n)
			a := start(t, r, Watch{Verify: true, Run: testRun})
			b.set(t, veth.B, false)
			const count = 2000
			tx, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{Count: count}))
			if err != nil {
				t.Fatal(err)
			}
			q := tx.sum()
			if q.Submitted != count || q.Completed != count || q.Held != 0 {
				t.Errorf("%+v", q)
			}
			if tx.RefusedUnknown != (n == Asavie) || n == XSK && q.Refused != count {
				t.Errorf("refused %d, unknown %v", q.Refused, tx.RefusedUnknown)
			}
			time.Sleep(5 * pollEvery)
			b.set(t, veth.B, true)
			until(t, "frames after the link came back", func() bool {
				if _, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{Count: 1})); err != nil {
					t.Fatal(err)
				}
				return taken(r.Counters()) > 0
			})
			rx := a.end(t)
			if a.err != nil || n == XSK && rx.Queues[0].NetDown == 0 {
				t.Errorf("%+v, %v", rx.Queues, a.err)
			}
		})
	}
}

// TestFlood: a receiver that can never keep up ends when it is told to.
func TestFlood(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 1, 0)
			b.rx.RingSize = 64
			r, s := b.receiver(t, n, RxOptions{}), b.sender(t, XSK)
			a := start(t, r, Watch{Verify: true, Run: testRun, PayloadCheck: true})
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := s.Run(ctx, offer(t, "1518", 1, Offer{})); err != nil {
					t.Error(err)
				}
			}()
			until(t, "the flood", func() bool { return taken(r.Counters()) > 1000 })
			rx := a.end(t)
			cancel()
			<-done
			if a.err != nil || rx.Totals.Distinct+rx.Totals.TooLate != rx.Queues[0].Taken {
				t.Errorf("%+v of %d, %v", rx.Totals, rx.Queues[0].Taken, a.err)
			}
		})
	}
}

// pidOf is the child of an engine.
func pidOf(t *testing.T, e any) int {
	t.Helper()
	switch e := e.(type) {
	case *asavieSender:
		return e.cmd.Process.Pid
	case *asavieReceiver:
		return e.cmd.Process.Pid
	}
	t.Fatalf("%T has no child", e)
	return 0
}

// TestChildKilled in mid-trial: an error, at once, and nothing left.
func TestChildKilled(t *testing.T) {
	b := newBench(t, 1, 0)
	r, err := OpenAsavieReceiver(b.rx, RxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenAsavieSender(b.tx)
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, r, Watch{Verify: true})
	go func() {
		for taken(r.Counters()) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = syscall.Kill(pidOf(t, s), unix.SIGKILL)
		_ = syscall.Kill(pidOf(t, r), unix.SIGKILL)
	}()
	if _, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{PPS: 1000})); !errors.Is(err, ErrChildGone) {
		t.Errorf("sent: %v", err)
	}
	<-a.done
	if !errors.Is(a.err, ErrChildGone) {
		t.Errorf("received: %v", a.err)
	}
	for _, err := range []error{s.Close(), r.Close()} {
		if err == nil || !strings.Contains(err.Error(), "signal: killed") {
			t.Errorf("closed: %v", err)
		}
	}
	// The queues are free again.
	b.receiver(t, Asavie, RxOptions{})
	b.sender(t, Asavie)
}

// TestChildHangs in mid-trial: it is given up and ended.
func TestChildHangs(t *testing.T) {
	b := newBench(t, 1, 0)
	s, err := OpenAsavieSender(b.tx)
	if err != nil {
		t.Fatal(err)
	}
	s.(*asavieSender).patience = time.Second
	go func() {
		for submitted(s.Counters()) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = syscall.Kill(pidOf(t, s), unix.SIGSTOP)
	}()
	if _, err := send(t, context.Background(), s, offer(t, "64", 1, Offer{PPS: 1000})); !errors.Is(err, ErrChildSilent) {
		t.Errorf("sent: %v", err)
	}
	if err := s.Close(); err == nil {
		t.Error("the child ended by itself")
	}
}

// TestParentKilled: its child ends by itself.
func TestParentKilled(t *testing.T) {
	b := newBench(t, 1, 0)
	parent := exec.Command("/proc/self/exe", parentCommand, b.Namespace(veth.A), strconv.Itoa(b.tx.Port.IfIndex))
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, rerr := bufio.NewReader(out).ReadString('\n')
	if err := parent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = parent.Wait() // "signal: killed"
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || rerr != nil {
		t.Fatal(err, rerr)
	}
	until(t, "the child's end", func() bool { return gone(child) })
	b.sender(t, Asavie) // no program is left on the port, and the queue is free
}

// gone is whether a process has ended; who reaps it is not our affair.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// cpuOf is what a process, or with 0 this one, has used.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	var total uint64
	path := "/proc/self/stat"
	if pid != 0 {
		path = fmt.Sprintf("/proc/%d/stat", pid)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	for _, s := range f[11:13] { // utime and stime, in ticks of 10 ms
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return time.Duration(total) * 10 * time.Millisecond
}

// TestIdleCostsLittle: a receiver of nothing and a sender of one frame a second
// do not spin. A spinning worker would use all of the time.
func TestIdleCostsLittle(t *testing.T) {
	for _, n := range engines {
		t.Run(string(n), func(t *testing.T) {
			b := newBench(t, 1, 0)
			r, s := b.receiver(t, n, RxOptions{}), b.sender(t, n)
			start(t, r, Watch{Verify: true, Run: testRun})
			pids := []int{0}
			if n == Asavie {
				pids = append(pids, pidOf(t, r), pidOf(t, s))
			}
			before := make([]time.Duration, len(pids))
			for i, pid := range pids {
				before[i] = cpuOf(t, pid)
			}
			const while = time.Second
			if _, err := send(t, withTimeout(t, while), s, offer(t, "64", 1, Offer{PPS: 1})); err != nil {
				t.Fatal(err)
			}
			for i, pid := range pids {
				used := cpuOf(t, pid) - before[i]
				t.Logf("process %d of %d: %v of %v", i, len(pids), used, while)
				if used > while/5 {
					t.Errorf("process %d of %d used %v of %v", i, len(pids), used, while)
				}
			}
		})
	}
}
