package xsk

import (
	"testing"
	"time"
)

// pair is a sender and a receiver of small rings, the receiver in the XSKMAP.
func pair(t *testing.T, rxCfg Config, fill int) (tx, rx *Socket) {
	t.Helper()
	v := newVeth(t, 1, 1500)
	txMem := openUmem(t, UmemConfig{Frames: 256, Chunk: 2048})
	rxMem := openUmem(t, UmemConfig{Frames: 256, Chunk: 2048})
	rxCfg.IfIndex, rxCfg.Prefill = v.rx, chunks(rxMem, fill)
	rx = openSocket(t, rxMem, rxCfg)
	tx = openSocket(t, txMem, Config{IfIndex: v.tx, TxSize: 128})
	v.redirect(t, false, rx)
	return tx, rx
}

// settle waits until the receiver has accounted for n frames one way or other.
func settle(t *testing.T, s *Socket, n uint64) Stats {
	t.Helper()
	deadline := time.Now().Add(2 * time.Second)
	for {
		st, err := s.Stats()
		must(t, err)
		if st.Rx.Produced+st.RxRingFull+st.RxDropped >= n || time.Now().After(deadline) {
			return st
		}
	}
}

func TestFullReceiveRingIsCounted(t *testing.T) {
	tx, rx := pair(t, Config{RxSize: 64, FillSize: 256}, 256)
	sendAll(t, tx, 100, 60)
	st := settle(t, rx, 100)
	if st.Rx != (RingCount{64, 0}) || st.RxRingFull != 36 || st.RxDropped != 0 {
		t.Fatalf("%+v", st)
	}
	receive(t, rx, 64, 60)
}

// A frame that found no buffer shows in both counters: they are not to be added.
func TestEmptyFillRingIsCounted(t *testing.T) {
	tx, rx := pair(t, Config{RxSize: 64}, 10)
	sendAll(t, tx, 30, 60)
	st := settle(t, rx, 30)
	if st.Rx.Produced != 10 || st.RxDropped != 20 || st.RxFillEmpty != 20 {
		t.Fatalf("%+v", st)
	}
	if st.Fill != (RingCount{10, 10}) {
		t.Fatalf("fill ring %+v", st.Fill)
	}
}

// A frame that does not fit its buffer: chunk 2048 less the kernel's 256.
func TestTooLongFrameIsDroppedAndCounted(t *testing.T) {
	v := newVeth(t, 1, 2000)
	txMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 4096})
	rxMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048})
	rx := openSocket(t, rxMem, Config{IfIndex: v.rx, RxSize: 64, Prefill: chunks(rxMem, 64)})
	tx := openSocket(t, txMem, Config{IfIndex: v.tx, TxSize: 64})
	v.redirect(t, false, rx)
	sendAll(t, tx, 5, 1793)
	if st := settle(t, rx, 5); st.RxDropped != 5 || st.Rx.Produced != 0 || st.RxFillEmpty != 0 {
		t.Fatalf("1793 bytes: %+v", st)
	}
	sendAll(t, tx, 5, 1792)
	if st := settle(t, rx, 10); st.RxDropped != 5 || st.Rx.Produced != 5 {
		t.Fatalf("1792 bytes: %+v", st)
	}
}

func TestBadFillEntriesAreCounted(t *testing.T) {
	tx, rx := pair(t, Config{RxSize: 64}, 0)
	idx, _ := rx.Fill.Reserve(3)
	rx.Fill.Set(idx, 1<<40)
	rx.Fill.Set(idx+1, 256*2048)
	rx.Fill.Set(idx+2, 4096)
	rx.Fill.Submit(3)
	sendAll(t, tx, 1, 60)
	if st := settle(t, rx, 1); st.Rx.Produced != 1 || st.Fill.Consumed != 3 {
		t.Fatalf("%+v", st)
	}
	idx, got := rx.Rx.Peek(1)
	if d := rx.Rx.Get(idx); got != 1 || rx.Umem().Base(d.Addr) != 4096 {
		t.Fatalf("%d: %+v", got, d)
	}
}

func TestPollWaitsForFrames(t *testing.T) {
	tx, rx := pair(t, Config{RxSize: 64}, 64)
	if ready, err := rx.Poll(true, time.Millisecond); ready || err != nil {
		t.Fatalf("nothing sent: %v %v", ready, err)
	}
	stage(t, tx, 1, 60)
	tx.KickTx()
	if ready, err := rx.Poll(true, time.Second); !ready || err != nil {
		t.Fatalf("one sent: %v %v", ready, err)
	}
	if ready, err := tx.Poll(false, time.Second); !ready || err != nil {
		t.Fatalf("room to send: %v %v", ready, err)
	}
	receive(t, rx, 1, 60)
}

func TestHeadroomStaysFreeBeforeTheFrame(t *testing.T) {
	v := newVeth(t, 1, 1500)
	rxMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 4096, Headroom: 128})
	rx := openSocket(t, rxMem, Config{IfIndex: v.rx, RxSize: 64, Prefill: chunks(rxMem, 64)})
	tx := openSocket(t, openUmem(t, UmemConfig{Frames: 64, Chunk: 2048}), Config{IfIndex: v.tx, TxSize: 64})
	v.redirect(t, false, rx)
	sendAll(t, tx, 1, 60)
	settle(t, rx, 1)
	idx, got := rx.Rx.Peek(1)
	d := rx.Rx.Get(idx)
	if free := d.Addr - rxMem.Base(d.Addr); got != 1 || free != 256+128 {
		t.Fatalf("%d bytes free before the frame, want 256 of the kernel and 128", free)
	}
}

func TestSoftwareChecksumIsFilledIn(t *testing.T) {
	const room, start, at = 16, 14, 6
	v := newVeth(t, 1, 1500)
	txMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 2048, TxMetadataLen: room, SwCsum: true})
	rxMem := openUmem(t, UmemConfig{Frames: 64, Chunk: 4096})
	rx := openSocket(t, rxMem, Config{IfIndex: v.rx, RxSize: 64, Prefill: chunks(rxMem, 64)})
	tx := openSocket(t, txMem, Config{IfIndex: v.tx, TxSize: 64, ZeroCopy: Forbid})
	v.redirect(t, false, rx)
	TxMetadata{Flags: MetaChecksum, CsumStart: start, CsumOffset: at}.Put(txMem.Data(0, room))
	frame := txMem.Data(room, 60)
	testFrame(frame, 3)
	frame[start+at], frame[start+at+1] = 0, 0
	idx, _ := tx.Tx.Reserve(1)
	tx.Tx.Set(idx, Desc{Addr: room, Len: 60, Options: OptTxMetadata})
	tx.Tx.Submit(1)
	expect(t, tx, KickResult{}, 1, 1)
	settle(t, rx, 1)
	idx, _ = rx.Rx.Peek(1)
	d := rx.Rx.Get(idx)
	if sum := onesSum(rxMem.Data(d.Addr, d.Len)[start:]); sum != 0xFFFF {
		t.Fatalf("sum with checksum %#x, want 0xffff", sum)
	}
}

// onesSum is the Internet sum of RFC 1071 over an even number of bytes.
func onesSum(b []byte) uint32 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	return sum
}
