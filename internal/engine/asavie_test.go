package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/frame"
	"linerate/internal/meter"
	"linerate/internal/nettest"
	"linerate/internal/pace"
	"linerate/internal/wire"
	"linerate/xsk"
)

// libraryPanic is what asavie/xdp v0.3.3 panics with when sendto answers errno.
func libraryPanic(errno unix.Errno) error {
	return guarded(func() {
		rc := ^uintptr(0) // what a system call that failed returns
		panic(fmt.Errorf("sendto failed with rc=%d and errno=%d", rc, errno))
	})
}

func TestPanicErrno(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENETDOWN, unix.ENOBUFS, unix.EPERM, unix.ENXIO} {
		if got := panicErrno(libraryPanic(errno)); got != errno {
			t.Errorf("%v became %v", errno, got)
		}
	}
	for _, text := range []string{"", "index out of range [3] with length 2", " and errno=", " and errno=0", " and errno=-1", " and errno=99999"} {
		if got := panicErrno(errors.New(text)); got != unix.EIO {
			t.Errorf("%q became %v", text, got)
		}
	}
}

func TestKickResult(t *testing.T) {
	for errno, code := range map[unix.Errno]xsk.KickCode{
		unix.ENETDOWN: xsk.KickNetDown, unix.ENOBUFS: xsk.KickNoBufs, unix.ENOMEM: xsk.KickNoBufs,
		unix.ENXIO: xsk.KickFatal, unix.EINVAL: xsk.KickFatal,
	} {
		if r := kickResult(libraryPanic(errno)); r.Code != code || r.Errno != errno {
			t.Errorf("%v: %v, %v", errno, r.Code, r.Errno)
		}
	}
}

func TestGuarded(t *testing.T) {
	if err := guarded(func() {}); err != nil {
		t.Error(err)
	}
	err := guarded(func() { panic("boom") })
	if err == nil || err.Error() != "asavie/xdp panicked: boom" {
		t.Error(err)
	}
	own := errors.New("own")
	if err := guard(func() error { return own }); !errors.Is(err, own) {
		t.Error(err)
	}
	if err := guard(func() error { panic("boom") }); err == nil {
		t.Error("a panic was swallowed")
	}
}

// fill sets every exported field that it can reach to something else than its
// zero value, so that a round trip that loses one shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Struct:
		switch p := v.Addr().Interface().(type) {
		case *netip.Addr:
			*p = netip.AddrFrom4([4]byte{198, 18, byte(*n >> 8), byte(*n)})
			return
		case *wire.Sizes:
			*p, _ = wire.ParseSizes(fmt.Sprintf("%d-%d", 64+*n, 1000+*n))
			return
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && v.Type().Field(i).Tag.Get("json") != "-" {
				fill(f, n)
			}
		}
	default:
		panic("no value for a " + v.Kind().String())
	}
}

// TestMessagesSurviveJSON: the child works on what the parent meant, and the
// parent on what the child found, down to the last field.
func TestMessagesSurviveJSON(t *testing.T) {
	for _, v := range []any{new(childOrder), new(childReport)} {
		n := 0
		fill(reflect.ValueOf(v).Elem(), &n)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := json.Unmarshal(b, got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v, got) {
			t.Errorf("sent %s\ngot %+v", b, got)
		}
		if n < 60 {
			t.Errorf("only %d values in %T", n, v)
		}
	}
}

// TestExtremesSurviveJSON: numbers that a float64 cannot hold, every kind of
// sizes, both families of addresses, and what is not set.
func TestExtremesSurviveJSON(t *testing.T) {
	const most = ^uint64(0)
	o := childOrder{Offer: &Offer{PPS: 14_880_952.380952381, Count: most, Start: 1<<63 - 1, Duration: time.Hour}}
	for i, s := range []string{"64", "64,128,1518", "64-1518", "imix"} {
		w := writerOf(t, s, i, 4)
		if i > 1 {
			w.Stream.Stack.Src, w.Stream.Stack.Dst = netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
			w.Stream.Flows.SrcAddrs = frame.AddrRange{Lo: netip.MustParseAddr("2001:db8::1"), Hi: netip.MustParseAddr("2001:db8::ff")}
		}
		o.Offer.Writers = append(o.Offer.Writers, w)
	}
	r := childReport{Tx: []meter.TxCounts{{Submitted: most}}, TxDone: &TxResult{FirstNs: 1<<63 - 1, Queues: []TxQueue{
		{Submitted: most, Stalls: pace.Stalls{Longest: time.Hour}}}}}
	for _, v := range []any{&o, &r} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got := reflect.New(reflect.TypeOf(v).Elem()).Interface()
		if err := json.Unmarshal(b, got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v, got) {
			t.Errorf("sent %s\ngot %+v", b, got)
		}
	}
}

// TestChildRefuses what is not to open, without opening anything.
func TestChildRefuses(t *testing.T) {
	for in, want := range map[string]string{
		``:              "read the order to open: EOF",
		`garbage`:       "read the order to open",
		`{"Stop":true}`: "the first order is not to open",
		`{"Open":{"IfIndex":-1,"Queues":[{"ID":0}],"Chunk":4096,"Budget":256,"RingSize":256}}`: "asavie/xdp",
	} {
		var out strings.Builder
		err := RunChild(context.Background(), strings.NewReader(in), &out)
		said := out.String()
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) {
			t.Errorf("%q: %s", in, said)
		}
	}
}

// childOver runs a child that has opened nothing, and so carries out nothing.
func childOver(t *testing.T) (orders *json.Encoder, reports *json.Decoder, hangUp func(), done <-chan error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &child{in: json.NewDecoder(inR), out: json.NewEncoder(outW)}
	c.tx = []*txLoop{newTxLoop(Queue{CPU: -1}, Config{Batch: 64, Budget: 64}, &fakePath{size: 64})}
	ended := make(chan error, 1)
	go func() {
		ended <- c.work()
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		outR.Close()
	})
	return json.NewEncoder(inW), json.NewDecoder(outR), func() { inW.Close() }, ended
}

// result skips counters until a report that matters.
func result(t *testing.T, in *json.Decoder) (r childReport) {
	t.Helper()
	for r.TxDone == nil && r.Err == "" {
		r = childReport{}
		if err := in.Decode(&r); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// TestChildTrials: an order right behind a result is not lost, nor is a stop
// that came too late taken for an order.
func TestChildTrials(t *testing.T) {
	orders, reports, hangUp, done := childOver(t)
	say := func(o childOrder) {
		t.Helper()
		if err := orders.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	for k := range uint64(200) {
		o := offerOf(t, Offer{Count: 1 + k%5})
		say(childOrder{Offer: &o})
		r := result(t, reports)
		if r.Err != "" || r.TxDone.Queues[0].Submitted != o.Count || !r.TxDone.RefusedUnknown {
			t.Fatalf("trial %d: %+v", k, r)
		}
		if k%3 == 0 {
			say(childOrder{Stop: true})
		}
	}
	endless := offerOf(t, Offer{PPS: 100})
	say(childOrder{Offer: &endless})
	say(childOrder{Stop: true})
	if r := result(t, reports); r.Err != "" {
		t.Error(r.Err)
	}
	say(childOrder{Watch: &Watch{}})
	if r := result(t, reports); r.Err == "" {
		t.Error("a sender agreed to watch")
	}
	hangUp()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestChildEndsWithItsParent: in the middle of a trial without an end.
func TestChildEndsWithItsParent(t *testing.T) {
	orders, reports, hangUp, done := childOver(t)
	endless := offerOf(t, Offer{PPS: 100})
	if err := orders.Encode(childOrder{Offer: &endless}); err != nil {
		t.Fatal(err)
	}
	var r childReport
	if err := reports.Decode(&r); err != nil { // it is at work
		t.Fatal(err)
	}
	hangUp()
	result(t, reports)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// bad starts a child that does not keep to the protocol.
func bad(t *testing.T, what string) *asavieProcess {
	t.Helper()
	p := &asavieProcess{cmd: exec.Command("/proc/self/exe", badCommand, what), reports: make(chan childReport), patience: 200 * time.Millisecond}
	if err := p.start(Config{Port: Port{Do: func(f func() error) error { return f() }}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestBadChildren(t *testing.T) {
	for what, want := range map[string]error{"silent": ErrChildSilent, "garbage": ErrChildGone, "dies": ErrChildGone} {
		t.Run(what, func(t *testing.T) {
			p := bad(t, what)
			if _, err := p.ask(childOrder{Stop: true}); !errors.Is(err, want) {
				t.Errorf("asked: %v", err)
			}
			p = bad(t, what)
			if _, err := p.trial(context.Background(), childOrder{Stop: true}); !errors.Is(err, want) {
				t.Errorf("in a trial: %v", err)
			}
			if _, err := p.trial(context.Background(), childOrder{Stop: true}); !errors.Is(err, ErrChildGone) {
				t.Errorf("in the next: %v", err)
			}
			err := p.Close()
			if err == nil || !strings.HasPrefix(err.Error(), "end the asavie engine: ") {
				t.Errorf("closed: %v", err)
			}
			if again := p.Close(); !errors.Is(again, err) {
				t.Errorf("closed again: %v", again)
			}
		})
	}
}

// TestStubbornChildren end by force, whatever they still have to say.
func TestStubbornChildren(t *testing.T) {
	for _, what := range []string{"stays", "chatty"} {
		p := bad(t, what)
		if what == "chatty" {
			p.patience = patience
			if _, err := p.ask(childOrder{Stop: true}); err != nil {
				t.Error(err)
			}
		}
		if err := p.Close(); (err != nil) != (what == "stays") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestStartWithoutANamespace leaves no pipe behind.
func TestStartWithoutANamespace(t *testing.T) {
	nettest.CheckNothingLeft(t)
	no := errors.New("no such namespace")
	c := testConfig(Port{Do: func(func() error) error { return no }})
	for range 3 {
		if _, err := startAsavie(c, false, nil); !errors.Is(err, no) {
			t.Error(err)
		}
	}
}
