package xsk

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stage puts n frames on the TX ring without a kick.
func stage(t *testing.T, s *Socket, n, length int) {
	t.Helper()
	idx, got := s.Tx.Reserve(uint32(n))
	if int(got) != n {
		t.Fatalf("%d of %d entries free", got, n)
	}
	for i := range n {
		addr := s.Umem().Chunk(i)
		testFrame(s.Umem().Data(addr, uint32(length)), byte(i))
		s.Tx.Set(idx+uint32(i), Desc{Addr: addr, Len: uint32(length)})
	}
	s.Tx.Submit(uint32(n))
}

// expect kicks once and compares what the errno was said to mean with what the
// consumer index and the completion ring show.
func expect(t *testing.T, s *Socket, want KickResult, consumed, completed uint64) {
	t.Helper()
	took, done := s.Tx.Consumed(), s.Comp.Produced()
	got := s.KickTx()
	took, done = s.Tx.Consumed()-took, s.Comp.Produced()-done
	if got != want || took != consumed || done != completed {
		t.Fatalf("kick %v %v: consumed %d, completed %d; want %v %v: %d, %d",
			got.Code, got.Errno, took, done, want.Code, want.Errno, consumed, completed)
	}
}

func TestRefusedFrameIsConsumedAndCompletedOnce(t *testing.T) {
	v := newVeth(t, 1, 1500)
	s := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	v.set(t, "lrx1", false) // no carrier at lrx0
	before := v.txDropped(t)
	const n = 20
	stage(t, s, n, 60)
	for range n {
		expect(t, s, KickResult{KickRefused, unix.EBUSY}, 1, 1)
	}
	expect(t, s, KickResult{}, 0, 0)
	st, err := s.Stats()
	must(t, err)
	if dropped := v.txDropped(t) - before; dropped != n || st.Errnos[unix.EBUSY] != n {
		t.Fatalf("tx_dropped rose by %d, EBUSY %d times; want %d", dropped, st.Errnos[unix.EBUSY], n)
	}
}

func TestPollHidesRefusedFrames(t *testing.T) {
	v := newVeth(t, 1, 1500)
	s := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	v.set(t, "lrx1", false)
	stage(t, s, 2, 60)
	if _, err := s.Poll(false, 0); err != nil {
		t.Fatal(err)
	}
	if s.Comp.Produced() == 0 {
		t.Fatal("poll sent nothing: its documentation is wrong")
	}
	if st, _ := s.Stats(); st.Errnos[unix.EBUSY] != 0 {
		t.Fatalf("poll counted %v", st.Errnos)
	}
}

func TestInterfaceDownConsumesNothing(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	s := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	v.set(t, "lrx0", false)
	stage(t, s, 4, 60)
	expect(t, s, KickResult{KickNetDown, unix.ENETDOWN}, 0, 0)
	v.set(t, "lrx0", true)
	for s.Comp.Produced() < 4 {
		if r := s.KickTx(); r.Code == KickFatal {
			t.Fatalf("after link up: %v", r)
		}
	}
}

func TestInvalidDescriptorIsCountedAndCompletes(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 64})
	bad := []Desc{
		{Addr: 64 * 2048, Len: 60},              // outside the umem
		{Addr: 2000, Len: 100},                  // over the end of its chunk
		{Addr: 0, Len: 60, Options: 1 << 7},     // unknown option
		{Addr: u.Chunk(3) + 2047, Len: 1 << 30}, // length beyond all
	}
	idx, _ := s.Tx.Reserve(uint32(len(bad)))
	for i, d := range bad {
		s.Tx.Set(idx+uint32(i), d)
	}
	s.Tx.Submit(uint32(len(bad)))
	for range bad {
		expect(t, s, KickResult{}, 1, 1) // one a kick, and no errno
	}
	// Each comes back under the very address given, be it out of the umem.
	idx, got := s.Comp.Peek(9)
	for i := range got {
		if addr := s.Comp.Get(idx + i); addr != bad[i].Addr {
			t.Errorf("completion %d: address %d, want %d", i, addr, bad[i].Addr)
		}
	}
	s.Comp.Release(got)
	st, err := s.Stats()
	must(t, err)
	n := uint64(len(bad))
	if st.TxInvalidDescs != n || st.Tx.Consumed != n || st.Comp.Produced != n {
		t.Fatalf("invalid %d, consumed %d, completed %d; want %d each",
			st.TxInvalidDescs, st.Tx.Consumed, st.Comp.Produced, n)
	}
	if res := sendAll(t, s, 10, 60); res.refused != 0 {
		t.Fatalf("then %+v", res)
	}
}

func TestKickWithoutTxRingIsNoBufsInTheKernel(t *testing.T) {
	v := newVeth(t, 1, 1500)
	s := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, RxSize: 64})
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(s.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	if errno != unix.ENOBUFS {
		t.Fatalf("kernel says %v", errno)
	}
	if r := s.KickTx(); r.Code != KickFatal {
		t.Fatalf("%+v", r)
	}
	if s.TxNeedsWakeup() || s.Tx != nil {
		t.Fatal("a TX ring without having asked")
	}
	if r := s.WakeRx(); r.Code != KickDone {
		t.Fatalf("wake %+v", r)
	}
	if ready, err := s.Poll(true, time.Millisecond); ready || err != nil {
		t.Fatalf("poll %v %v", ready, err)
	}
}

func TestBadMetadataStaysAtTheHead(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048, TxMetadataLen: 24, SwCsum: true})
	s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 64, ZeroCopy: Forbid})
	addr := u.Chunk(0) + 24
	testFrame(u.Data(addr, 60), 0)
	TxMetadata{Flags: 1 << 20}.Put(u.Data(u.Chunk(0), 24))
	idx, _ := s.Tx.Reserve(1)
	s.Tx.Set(idx, Desc{Addr: addr, Len: 60, Options: OptTxMetadata})
	s.Tx.Submit(1)
	for range 2 {
		if r := s.KickTx(); r != (KickResult{KickFatal, unix.EINVAL}) || s.Tx.Consumed() != 0 {
			t.Fatalf("kick %+v, consumed %d", r, s.Tx.Consumed())
		}
	}
	// The kernel may complete a frame that it keeps, once per kick.
	reap(s)
	TxMetadata{Flags: MetaTimestamp}.Put(u.Data(u.Chunk(0), 24))
	expect(t, s, KickResult{}, 1, 1)
	if ns, ok := TxTimestamp(u.Data(u.Chunk(0), 24)); !ok || ns == 0 {
		t.Fatalf("timestamp %d %v", ns, ok)
	}
}

func TestFullCompletionRingHoldsDescriptorsBack(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	u := openUmem(t, UmemConfig{Frames: 256, Chunk: 2048})
	s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 256, CompSize: 64})
	stage(t, s, 200, 60)
	for range 20 {
		if r := s.KickTx(); r.Code != KickAgain && r.Code != KickDone {
			t.Fatalf("%+v", r)
		}
	}
	if s.Tx.Consumed() != 64 || s.Comp.Available() != 64 {
		t.Fatalf("consumed %d, completed %d behind a ring of 64", s.Tx.Consumed(), s.Comp.Available())
	}
	for done := 0; done < 200; done += reap(s) {
		s.KickTx()
	}
}

func TestTxBudgetSendsMorePerKick(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	u := openUmem(t, UmemConfig{Frames: 128, Chunk: 2048})
	s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 128})
	stage(t, s, 100, 60)
	expect(t, s, KickResult{KickAgain, unix.EAGAIN}, 32, 32)
	must(t, s.Close())
	s = openSocket(t, u, Config{IfIndex: v.tx, TxSize: 128, TxBudget: 128})
	stage(t, s, 100, 60)
	if len(s.Notes()) > 0 { // an older kernel: said so
		expect(t, s, KickResult{KickAgain, unix.EAGAIN}, 32, 32)
		return
	}
	expect(t, s, KickResult{}, 100, 100)
	if s.rawKick {
		t.Fatal("a kick of 128 frames keeps the scheduler out")
	}
	must(t, s.Close())
	_, err := Open(u, Config{IfIndex: v.tx, TxSize: 128, TxBudget: 256})
	var e *Error
	if !errors.As(err, &e) || e.Errno != unix.EACCES || e.Op != "set tx budget" {
		t.Fatalf("budget over the ring: %v", err)
	}
}

func TestDeletedInterfaceIsFatalNotAPanic(t *testing.T) {
	v := newVeth(t, 1, 1500)
	u := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	s := openSocket(t, u, Config{IfIndex: v.tx, TxSize: 64, RxSize: 64})
	v.remove(t)
	stage(t, s, 1, 60)
	expect(t, s, KickResult{KickFatal, unix.ENXIO}, 0, 0)
	if _, err := s.Poll(true, 0); !errors.Is(err, unix.ENXIO) {
		t.Fatalf("poll: %v", err)
	}
	if _, err := s.Stats(); err != nil {
		t.Fatal(err)
	}
}

func TestWatchdogKicksWhatStalls(t *testing.T) {
	v := newVeth(t, 1, 1500)
	v.drop(t, false)
	s := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	now := NowNs()
	if _, kicked := s.KickIfStalled(now); kicked {
		t.Fatal("kicked with nothing outstanding")
	}
	stage(t, s, 3, 60)
	if _, kicked := s.KickIfStalled(now); kicked {
		t.Fatal("kicked at once")
	}
	if _, kicked := s.KickIfStalled(now + stallNs - 1); kicked {
		t.Fatal("kicked early")
	}
	if _, kicked := s.KickIfStalled(now + stallNs); !kicked || s.Comp.Produced() != 3 {
		t.Fatalf("kicked %v, completed %d", kicked, s.Comp.Produced())
	}
	if st, _ := s.Stats(); st.Stalls != 1 || st.Kicks != 1 {
		t.Fatalf("%+v", st)
	}
}
