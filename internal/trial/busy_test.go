package trial

import (
	"errors"
	"testing"
	"time"

	"linerate/internal/engine"
	"linerate/xsk"
)

// The kernel frees a queue some time after its holder is gone: the next trial
// waits for that.
func TestQueueIsFreedLate(t *testing.T) {
	eachEngine(t, func(t *testing.T, eng engine.Name, a, b string) {
		s := spec(t, eng, a, b)
		u, err := xsk.NewUmem(xsk.UmemConfig{Frames: 64, Chunk: 2048})
		if err != nil {
			t.Fatal(err)
		}
		var sock *xsk.Socket
		err = s.Rx.Port.NS.Do(func() (err error) {
			sock, err = xsk.Open(u, xsk.Config{IfIndex: s.Rx.Port.Index, RxSize: 64, FillSize: 64, ZeroCopy: xsk.Forbid})
			return err
		})
		if err != nil {
			t.Fatal(errors.Join(err, u.Close()))
		}
		gone := make(chan error)
		time.AfterFunc(300*time.Millisecond, func() { gone <- errors.Join(sock.Close(), u.Close()) })
		o := run(t, s)
		if err := <-gone; err != nil {
			t.Error(err)
		}
		expect(t, o, map[string]uint64{"sent": 2000, "received": 2000, "unexplained": 0})
	})
}
