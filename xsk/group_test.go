package xsk

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestSharedUmemServesTwoQueuesEach(t *testing.T) {
	v := newVeth(t, 2, 1500)
	tx, err := OpenGroup(GroupConfig{
		Queues: []int{0, 1}, Shared: true, Umem: UmemConfig{Frames: 64, Chunk: 2048},
		Socket: Config{IfIndex: v.tx, TxSize: 64},
	})
	must(t, err)
	defer tx.Close()
	rx, err := OpenGroup(GroupConfig{
		Queues: []int{0, 1}, Shared: true, Umem: UmemConfig{Frames: 64, Chunk: 2048},
		Socket: Config{IfIndex: v.rx, RxSize: 64}, PrefillChunks: 64,
	})
	must(t, err)
	defer rx.Close()
	v.redirect(t, false, rx.Members[0].Socket, rx.Members[1].Socket)
	if a, b := tx.Members[0], tx.Members[1]; a.Umem != b.Umem || b.Chunk(0) != 64*2048 || b.Chunk(64) != b.Chunk(0) {
		t.Fatalf("chunks %d %d", a.Chunk(0), b.Chunk(0))
	}
	for q, m := range tx.Members {
		idx, got := m.Socket.Tx.Reserve(20)
		for i := range got {
			addr := m.Chunk(int(i))
			testFrame(m.Umem.Data(addr, 60), byte(i))
			m.Socket.Tx.Set(idx+i, Desc{Addr: addr, Len: 60})
		}
		m.Socket.Tx.Submit(got)
		expect(t, m.Socket, KickResult{}, 20, 20)
		receive(t, rx.Members[q].Socket, 20, 60)
	}
	for q, m := range rx.Members {
		if n := m.Socket.Rx.Produced(); n != 20 {
			t.Errorf("queue %d received %d", q, n)
		}
	}
}

// The first socket of a UMEM introduced it to the kernel; the others must
// outlive it, and a new one must find the UMEM through them.
func TestSharedUmemOutlivesItsFirstSocket(t *testing.T) {
	v := newVeth(t, 2, 1500)
	v.drop(t, false)
	u := openUmem(t, UmemConfig{Frames: 128, Chunk: 2048})
	first := openSocket(t, u, Config{IfIndex: v.tx, Queue: 0, TxSize: 64})
	other := openSocket(t, u, Config{IfIndex: v.tx, Queue: 1, TxSize: 64})
	must(t, first.Close())
	sendAll(t, other, 20, 60)
	again := openSocket(t, u, Config{IfIndex: v.tx, Queue: 0, TxSize: 64})
	sendAll(t, again, 20, 60)
	must(t, other.Close())
	must(t, again.Close())
	last := openSocket(t, u, Config{IfIndex: v.tx, Queue: 1, TxSize: 64})
	sendAll(t, last, 20, 60)
}

func TestSocketsOfOneUmemAgree(t *testing.T) {
	v := newVeth(t, 2, 1500)
	u := openUmem(t, UmemConfig{Frames: 128, Chunk: 2048})
	openSocket(t, u, Config{IfIndex: v.tx, TxSize: 64})
	for name, cfg := range map[string]Config{
		"sg":          {IfIndex: v.tx, Queue: 1, TxSize: 64, SG: true},
		"need wakeup": {IfIndex: v.tx, Queue: 1, TxSize: 64, NoNeedWakeup: true},
		"zero-copy":   {IfIndex: v.tx, Queue: 1, TxSize: 64, ZeroCopy: Require},
	} {
		var e *ConfigError
		if _, err := Open(u, cfg); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGroupOpensAllOrNone(t *testing.T) {
	v := newVeth(t, 2, 1500)
	cfg := GroupConfig{
		Queues: []int{0, 1, 2}, Umem: UmemConfig{Frames: 64, Chunk: 2048},
		Socket: Config{IfIndex: v.tx, TxSize: 64},
	}
	if _, err := OpenGroup(cfg); !errors.Is(err, unix.EINVAL) {
		t.Fatalf("queue 2 of 2: %v", err)
	}
	cfg.Queues = []int{1, 0}
	cfg.Umem.Hugepages = true
	g, err := OpenGroup(cfg)
	must(t, err)
	if g.Members[0].Socket.Config().Queue != 1 || g.Members[0].Umem == g.Members[1].Umem {
		t.Fatal("members mixed up")
	}
	if n := len(g.Notes()); n > 1 {
		t.Errorf("%d notes for one cause: %q", n, g.Notes())
	}
	must(t, g.Close())
	must(t, g.Close())
	for _, bad := range []GroupConfig{{}, {Queues: []int{0}, PrefillChunks: 1}} {
		var e *ConfigError
		if _, err := OpenGroup(bad); !errors.As(err, &e) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A jumbo frame of three descriptors leaves as one frame and arrives as one.
func TestJumboFramesGoInSeveralDescriptors(t *testing.T) {
	v := newVeth(t, 1, 9000)
	txMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 4096})
	rxMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 4096})
	tx := openSocket(t, txMem, Config{IfIndex: v.tx, TxSize: 64, SG: true})
	rx := openSocket(t, rxMem, Config{IfIndex: v.rx, RxSize: 64, SG: true, Prefill: chunks(rxMem, 64)})
	v.redirect(t, true, rx)
	const length = 9000
	frame := make([]byte, length)
	testFrame(frame, 5)
	idx, _ := tx.Tx.Reserve(3)
	for i := range 3 {
		part := frame[i*3000 : (i+1)*3000]
		d := Desc{Addr: txMem.Chunk(i), Len: 3000, Options: OptContinued}
		if i == 2 {
			d.Options = 0
		}
		copy(txMem.Data(d.Addr, d.Len), part)
		tx.Tx.Set(idx+uint32(i), d)
	}
	tx.Tx.Submit(3)
	expect(t, tx, KickResult{}, 3, 3)
	if ready, err := rx.Poll(true, time.Second); !ready || err != nil {
		t.Fatalf("poll %v %v", ready, err)
	}
	idx, got := rx.Rx.Peek(64)
	var whole []byte
	for i := range got {
		d := rx.Rx.Get(idx + i)
		whole = append(whole, rxMem.Data(d.Addr, d.Len)...)
		if last := i == got-1; last == (d.Options&OptContinued != 0) {
			t.Errorf("descriptor %d of %d: options %#x", i, got, d.Options)
		}
	}
	if !sameFrame(whole, length, 5) {
		t.Fatalf("received %d bytes in %d descriptors", len(whole), got)
	}
}

// A jumbo frame refused by the device is one EBUSY for all its descriptors.
func TestRefusedJumboFrameIsOneRefusal(t *testing.T) {
	v := newVeth(t, 1, 9000)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 4096})
	s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 64, SG: true})
	v.set(t, "lrx1", false)
	before := v.txDropped(t)
	idx, _ := s.Tx.Reserve(4)
	for i := range uint32(4) {
		s.Tx.Set(idx+i, Desc{Addr: u.Chunk(int(i)), Len: 2000, Options: OptContinued &^ (i & 1)})
	}
	s.Tx.Submit(4)
	expect(t, s, KickResult{KickRefused, unix.EBUSY}, 2, 2)
	expect(t, s, KickResult{KickRefused, unix.EBUSY}, 2, 2)
	if n := v.txDropped(t) - before; n != 2 {
		t.Fatalf("tx_dropped rose by %d", n)
	}
}
