package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A child that has been stopped ends the trial, not only the patience of whoever
// waits for it.
func TestSilentChildEndsTheTrial(t *testing.T) {
	p := &asavieProcess{orders: json.NewEncoder(io.Discard), reports: make(chan childReport)}
	done := make(chan error)
	go func() {
		_, err := p.trial(context.Background(), childOrder{Offer: &Offer{}})
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, errSilent) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("still waiting")
	}
}

// The errno that the library only prints is known again: a link that is down is
// not the end of the sender.
func TestErrnoOfThePanic(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENETDOWN, unix.ENXIO} {
		a := &asavieTx{}
		a.errs = guarded(func() {
			// As in Transmit of github.com/asavie/xdp v0.3.3.
			panic(fmt.Errorf("sendto failed with rc=%d and errno=%d", ^uintptr(0), errno))
		})
		if got := a.errno(); got != errno {
			t.Errorf("%v is read as %v", errno, got)
		}
	}
}
