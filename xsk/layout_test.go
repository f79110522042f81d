package xsk

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStructsLieAsInTheKernel(t *testing.T) {
	for _, c := range []struct {
		v       any
		size    uintptr
		offsets map[string]uintptr
	}{
		{Desc{}, 16, map[string]uintptr{"Addr": 0, "Len": 8, "Options": 12}},
		{umemReg{}, 32, map[string]uintptr{
			"Addr": 0, "Len": 8, "ChunkSize": 16, "Headroom": 20, "Flags": 24, "TxMetadataLen": 28}},
		{ringOffset{}, 32, map[string]uintptr{"Producer": 0, "Consumer": 8, "Desc": 16, "Flags": 24}},
		{mmapOffsets{}, 128, map[string]uintptr{"Rx": 0, "Tx": 32, "Fill": 64, "Comp": 96}},
		{sockaddrXDP{}, 16, map[string]uintptr{
			"Family": 0, "Flags": 2, "IfIndex": 4, "Queue": 8, "SharedUmemFD": 12}},
		{statistics{}, 48, map[string]uintptr{
			"RxDropped": 0, "RxInvalidDescs": 8, "TxInvalidDescs": 16,
			"RxRingFull": 24, "RxFillRingEmptyDescs": 32, "TxRingEmptyDescs": 40}},
		{xdpOptions{}, 4, map[string]uintptr{"Flags": 0}},
	} {
		typ := reflect.TypeOf(c.v)
		if typ.Size() != c.size || typ.NumField() != len(c.offsets) {
			t.Errorf("%s: %d bytes, %d fields; want %d, %d", typ, typ.Size(), typ.NumField(), c.size, len(c.offsets))
		}
		for name, want := range c.offsets {
			if f, ok := typ.FieldByName(name); !ok || f.Offset != want {
				t.Errorf("%s.%s at %d, want %d", typ, name, f.Offset, want)
			}
		}
	}
}

func TestViewsStayInsideTheMemory(t *testing.T) {
	mem := make([]byte, 64)
	for _, c := range []struct {
		off  uint64
		size uint32
		ok   bool
	}{
		{0, 8, true}, {56, 1, true}, {64, 0, false}, {56, 2, false}, {4, 1, false},
		{math.MaxUint64 - 7, 1, false}, {0, math.MaxUint32, false},
	} {
		if got := view[uint64](mem, c.off, c.size); (got != nil) != c.ok {
			t.Errorf("view of %d at %d: %v", c.size, c.off, got != nil)
		}
	}
}

func TestUmemAddressesAreChecked(t *testing.T) {
	u, err := NewUmem(UmemConfig{Frames: 4, Chunk: 2048})
	must(t, err)
	for _, c := range []struct {
		addr uint64
		n    uint32
		ok   bool
	}{
		{0, 8192, true}, {8191, 1, true}, {8192, 0, true}, {8191, 2, false},
		{8193, 0, false}, {math.MaxUint64, 2, false}, {1 << 48, 1, false},
	} {
		if got := u.Data(c.addr, c.n); (got != nil) != c.ok || c.ok && uint32(len(got)) != c.n {
			t.Errorf("%d bytes at %d: %d, nil %v", c.n, c.addr, len(got), got == nil)
		}
	}
	if d := u.Data(0, 60); cap(d) != 60 {
		t.Errorf("a frame of 60 may grow to %d", cap(d))
	}
	for i, want := range map[int]uint64{0: 0, 3: 6144, 4: 0, -1: 6144} {
		if got := u.Chunk(i); got != want {
			t.Errorf("chunk %d at %d", i, got)
		}
	}
	if u.Base(6143) != 4096 || u.Frames() != 4 || u.ChunkSize() != 2048 {
		t.Error("base, frames or chunk size")
	}
	must(t, u.Close())
	must(t, u.Close())
	if u.Data(0, 1) != nil {
		t.Error("data of a closed umem")
	}
	if _, err := Open(u, Config{IfIndex: 1, TxSize: 64}); !errors.Is(err, ErrUmemClosed) {
		t.Errorf("open on a closed umem: %v", err)
	}
}

func TestUnalignedAddressesCarryTheirOffset(t *testing.T) {
	u, err := NewUmem(UmemConfig{Frames: 2, Chunk: 3000, Unaligned: true})
	must(t, err)
	defer u.Close()
	u.Data(300, 1)[0] = 7
	if d := u.Data(100|200<<48, 5); d == nil || d[0] != 7 || u.Base(100|200<<48) != 100 {
		t.Fatalf("%v", d)
	}
	if u.Data(5999|2<<48, 1) != nil || u.Data(math.MaxUint64, 1) != nil {
		t.Fatal("offset out of the umem")
	}
}

func TestImpossibleConfigsAreRefusedBeforeTheKernel(t *testing.T) {
	for _, c := range []UmemConfig{
		{}, {Frames: -1, Chunk: 2048}, {Frames: 1, Chunk: 3072}, {Frames: 1, Chunk: 8192},
		{Frames: 1, Chunk: 1024, Unaligned: true}, {Frames: 1, Chunk: 2048, Headroom: 1792},
		{Frames: 1, Chunk: 2048, Headroom: -1}, {Frames: 1, Chunk: 2048, TxMetadataLen: 20},
		{Frames: 1, Chunk: 2048, TxMetadataLen: 256}, {Frames: math.MaxInt, Chunk: 4096},
	} {
		var e *ConfigError
		if _, err := NewUmem(c); !errors.As(err, &e) || !strings.Contains(err.Error(), "want") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	u, err := NewUmem(UmemConfig{Frames: 1, Chunk: 2048})
	must(t, err)
	defer u.Close()
	for _, c := range []Config{
		{IfIndex: 1}, {IfIndex: 0, TxSize: 64}, {IfIndex: 1, TxSize: 100}, {IfIndex: 1, TxSize: 1 << 21},
		{IfIndex: 1, Queue: -1, TxSize: 64}, {IfIndex: 1, Queue: 1 << 16, TxSize: 64},
		{IfIndex: 1, RxSize: 64, TxBudget: 64}, {IfIndex: 1, TxSize: 64, TxBudget: -1},
		{IfIndex: 1, TxSize: 64, ZeroCopy: 3}, {IfIndex: 1, RxSize: 64, FillSize: 65},
		{IfIndex: 1, RxSize: 64, Prefill: make([]uint64, 65)},
	} {
		var e *ConfigError
		if _, err := Open(u, c); !errors.As(err, &e) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestKickErrnosKeepTheirMeaning(t *testing.T) {
	for _, c := range []struct {
		errno    unix.Errno
		copy, zc KickCode
	}{
		{0, KickDone, KickDone}, {unix.EAGAIN, KickAgain, KickAgain}, {unix.EINTR, KickAgain, KickAgain},
		{unix.EBUSY, KickRefused, KickAgain}, {unix.ENOBUFS, KickNoBufs, KickNoBufs},
		{unix.ENOMEM, KickNoBufs, KickNoBufs}, {unix.ENETDOWN, KickNetDown, KickNetDown},
		{unix.EINVAL, KickFatal, KickFatal}, {unix.ENXIO, KickFatal, KickFatal},
	} {
		if got := classify(c.errno, false); got != (KickResult{c.copy, c.errno}) {
			t.Errorf("copy mode %v: %v", c.errno, got)
		}
		if got := classify(c.errno, true); got != (KickResult{c.zc, c.errno}) {
			t.Errorf("zero-copy %v: %v", c.errno, got)
		}
	}
	if KickRefused.String() != "refused" || KickCode(99).String() != "unknown" {
		t.Error("names")
	}
	var c counters
	c.errno(unix.EBUSY)
	c.errno(5000)
	if c.errnos[unix.EBUSY].Load() != 1 || c.errnos[139].Load() != 1 {
		t.Error("errno counts")
	}
}

func TestWatchdogIsDueAfterAMillisecondWithoutProgress(t *testing.T) {
	ms := int64(time.Millisecond)
	var w Watchdog
	for i, step := range []struct {
		now              int64
		outstanding, had uint64
		due              bool
	}{
		{0, 0, 0, false}, {5 * ms, 3, 0, false}, {6*ms - 1, 3, 0, false}, {6 * ms, 3, 0, true},
		{6*ms + 1, 3, 0, false}, {7 * ms, 3, 0, true}, {8 * ms, 2, 1, false}, {9*ms - 1, 2, 1, false},
		{9 * ms, 0, 3, false}, {99 * ms, 1, 3, false}, {100 * ms, 1, 3, true},
	} {
		if got := w.Due(step.now, step.outstanding, step.had); got != step.due {
			t.Errorf("step %d: due %v", i, got)
		}
	}
}

func TestSharedIndexExtendsOverTheWrap(t *testing.T) {
	word := uint32(0)
	x := sharedIndex{word: &word}
	var total uint64
	for range 5 {
		total += 0xF0000000
		word += 0xF0000000
		if got := x.read(); got != total {
			t.Fatalf("%d, want %d", got, total)
		}
	}
}

func TestErrorsNameOperationAndObject(t *testing.T) {
	e := newError("bind", &Config{IfIndex: 3, Queue: 1}, unix.EBUSY)
	if s := e.Error(); s != "bind ifindex 3 queue 1: device or resource busy (another socket holds the queue)" {
		t.Error(s)
	}
	if s := newError("map umem", nil, unix.ENOMEM).Error(); s != "map umem: cannot allocate memory" {
		t.Error(s)
	}
	for _, errno := range []unix.Errno{unix.ENODEV, unix.EINVAL, unix.EOPNOTSUPP, unix.ENETDOWN, unix.EPERM} {
		if hint("bind", errno) == "" {
			t.Errorf("no hint for %v", errno)
		}
	}
	if _, err := ReadStatistics(-1); !errors.Is(err, unix.EBADF) {
		t.Errorf("statistics of nothing: %v", err)
	}
	if asErrno(errors.New("x")) != unix.EIO {
		t.Error("foreign error")
	}
}

// Every reading of the one clock lies between two of the other.
func TestNowNsIsClockMonotonic(t *testing.T) {
	const slack = 1000 // ns: what the calibration may be off by
	for range 1000 {
		var a, b unix.Timespec
		must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &a))
		now := NowNs()
		must(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &b))
		if now < a.Nano()-slack || now > b.Nano()+slack {
			t.Fatalf("%d is not between %d and %d", now, a.Nano(), b.Nano())
		}
	}
}

func TestTxMetadataLayout(t *testing.T) {
	b := make([]byte, TxMetadataSize)
	m := TxMetadata{Flags: MetaChecksum | MetaLaunchTime, CsumStart: 0x1234, CsumOffset: 0x5678, LaunchTime: 9}
	if !m.Put(b) || b[0] != 6 || b[8] != 0x34 || b[10] != 0x78 || b[16] != 9 {
		t.Errorf("% x", b)
	}
	if m.Put(b[:16]) || m.Put(nil) || !(TxMetadata{Flags: MetaTimestamp}).Put(b[:16]) {
		t.Error("room")
	}
	b[8] = 77 // as the kernel would
	if ns, ok := TxTimestamp(b); !ok || ns&0xff != 77 {
		t.Error("timestamp")
	}
	if _, ok := TxTimestamp(b[:15]); ok {
		t.Error("timestamp out of too little")
	}
}

func TestBindFlagsFollowThePolicy(t *testing.T) {
	for want, c := range map[uint16]Config{
		unix.XDP_USE_NEED_WAKEUP:                     {},
		unix.XDP_ZEROCOPY | unix.XDP_USE_NEED_WAKEUP: {ZeroCopy: Require},
		unix.XDP_COPY:                                {ZeroCopy: Forbid, NoNeedWakeup: true},
		unix.XDP_USE_SG:                              {SG: true, NoNeedWakeup: true},
	} {
		if got := c.bindFlags(); got != want {
			t.Errorf("%+v: %#x, want %#x", c, got, want)
		}
	}
}
