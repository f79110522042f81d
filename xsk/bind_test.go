package xsk

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestQueueIsFreeAgainAfterClose(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	for range 5 {
		s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 64, RxSize: 64})
		sendAll(t, s, 20, 60)
		before, err := s.Stats()
		must(t, err)
		must(t, s.Close())
		must(t, s.Close())
		after, err := s.Stats()
		if err != nil || after.Tx != (RingCount{20, 20}) || after.Kicks != before.Kicks {
			t.Fatalf("after close %+v, %v; before %+v", after, err, before)
		}
		if r := s.KickTx(); r.Code != KickFatal || s.FD() != -1 {
			t.Fatalf("kick after close: %+v", r)
		}
		if _, n := s.Tx.Reserve(1); n != 0 {
			t.Fatal("a closed socket has free entries")
		}
	}
}

func TestBindRefusalsAreTyped(t *testing.T) {
	v := newVeth(t, 1, 1500)
	held := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	for name, c := range map[string]struct {
		cfg  Config
		want unix.Errno
	}{
		"taken queue":          {Config{IfIndex: v.tx, TxSize: 64, BindTimeout: 30 * time.Millisecond}, unix.EBUSY},
		"no such queue":        {Config{IfIndex: v.rx, Queue: 7, TxSize: 64}, unix.EINVAL},
		"no such interface":    {Config{IfIndex: 9999, TxSize: 64}, unix.ENODEV},
		"no zero-copy on veth": {Config{IfIndex: v.rx, TxSize: 64, ZeroCopy: Require}, unix.EOPNOTSUPP},
	} {
		_, err := Open(u, c.cfg)
		var e *Error
		if !errors.As(err, &e) || e.Errno != c.want || e.Op != "bind" || e.IfIndex != c.cfg.IfIndex || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Open(held.Umem(), Config{IfIndex: v.tx, TxSize: 64})
	if !errors.Is(err, unix.EBUSY) {
		t.Errorf("same umem, same queue: %v", err)
	}
}

// The kernel binds in copy mode to an interface that is down; frames go once it
// is up.
func TestBindToAnInterfaceThatIsDown(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	v.set(t, "lrx0", false)
	s := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	if r := s.KickTx(); r.Code != KickNetDown {
		t.Fatalf("%+v", r)
	}
	v.set(t, "lrx0", true)
	if res := sendAll(t, s, 10, 60); res.completed != 10 {
		t.Fatalf("%+v", res)
	}
}

func TestUmemOptionsReachTheKernel(t *testing.T) {
	v := newVeth(t, 1, 1500)
	for name, cfg := range map[string]UmemConfig{
		"aligned 4096":    {Frames: 64, Chunk: 4096, Headroom: 256},
		"unaligned 3000":  {Frames: 64, Chunk: 3000, Unaligned: true},
		"tx metadata":     {Frames: 64, Chunk: 2048, TxMetadataLen: 16, SwCsum: true},
		"hugepages asked": {Frames: 64, Chunk: 2048, Hugepages: true},
	} {
		u, err := NewUmem(cfg)
		must(t, err)
		s, err := Open(u, Config{IfIndex: v.tx, TxSize: 64, RxSize: 64, ZeroCopy: Forbid})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := u.Close(); !errors.Is(err, unix.EBUSY) {
			t.Errorf("%s: umem closed under its socket: %v", name, err)
		}
		must(t, s.Close())
		must(t, u.Close())
		if len(u.Notes()) > 0 && !strings.Contains(u.Notes()[0], "2 MiB") {
			t.Errorf("%s: notes %q", name, u.Notes())
		}
	}
}

func TestUnalignedFramesArriveWhole(t *testing.T) {
	v := newVeth(t, 1, 1500)
	txMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048, Unaligned: true})
	rxMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 3000, Unaligned: true})
	rx := openSocket(t, rxMem, Config{IfIndex: v.rx, RxSize: 64, Prefill: chunks(rxMem, 64)})
	tx := openSocket(t, txMem, Config{IfIndex: v.tx, TxSize: 64})
	v.redirect(t, false, rx)
	sendAll(t, tx, 30, 1200)
	receive(t, rx, 30, 1200)
	// A frame over a chunk border, addressed as base and offset.
	d := Desc{Addr: 2000 | 30<<48, Len: 300}
	testFrame(txMem.Data(d.Addr, d.Len), 0)
	idx, _ := tx.Tx.Reserve(1)
	tx.Tx.Set(idx, d)
	tx.Tx.Submit(1)
	expect(t, tx, KickResult{}, 1, 1)
	receive(t, rx, 1, 300)
}

func TestBusyPollAndSendBufferOptions(t *testing.T) {
	v := newVeth(t, 1, 1500)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	s := openSocket(t, u, Config{
		IfIndex: v.tx, TxSize: 64, RxSize: 64, SendBuffer: 1 << 22, NoNeedWakeup: true,
		BusyPoll: BusyPoll{Usecs: 20, Budget: 64, Prefer: true},
	})
	for opt, want := range map[int]int{
		unix.SO_BUSY_POLL: 20, unix.SO_PREFER_BUSY_POLL: 1, unix.SO_SNDBUF: 1 << 22,
	} {
		if got, err := unix.GetsockoptInt(s.FD(), unix.SOL_SOCKET, opt); err != nil || got != want {
			t.Errorf("option %d is %d, %v; want %d", opt, got, err, want)
		}
	}
	if !s.TxNeedsWakeup() || s.FillNeedsWakeup() {
		t.Error("without need_wakeup every batch is kicked and no fill is")
	}
}

func TestOpenAndCloseLeakNoDescriptors(t *testing.T) {
	v := newVeth(t, 1, 1500)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	before := len(openFiles(t))
	maps := ringMaps(t)
	for range 50 {
		s, err := Open(u, Config{IfIndex: v.tx, TxSize: 64, RxSize: 64})
		must(t, err)
		must(t, s.Close())
		if _, err := Open(u, Config{IfIndex: v.tx, Queue: 9, TxSize: 64}); err == nil {
			t.Fatal("queue 9 of 1")
		}
	}
	if after := len(openFiles(t)); after != before {
		t.Fatalf("%d descriptors before, %d after", before, after)
	}
	if after := ringMaps(t); after != maps {
		t.Fatalf("%d ring maps before, %d after", maps, after)
	}
}

func openFiles(t *testing.T) []os.DirEntry {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return files
}

// ringMaps counts the mappings of sockets: each would keep its queue taken.
func ringMaps(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	must(t, err)
	return strings.Count(string(maps), "socket:[")
}
