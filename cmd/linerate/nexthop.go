package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"linerate/internal/frame"
	"linerate/internal/neighbor"
	"linerate/internal/nic"
	"linerate/internal/trial"
)

// nextHop asks the routes of the sender's namespace where the destinations go
// first, and has the kernel resolve it. With a cable between two ends in hand
// there need be no route, and a destination on the link need not answer: then
// the receiver is the next hop.
func nextHop(tx *endpoint, dst frame.AddrRange, cable bool) (*nic.Hop, error) {
	first, err := tx.port.NextHop(dst.Lo)
	var unknown *nic.NeighbourError
	switch {
	case cable && errors.Is(err, unix.ENETUNREACH):
		return nil, nil
	case cable && errors.As(err, &unknown) && !first.Gateway.IsValid():
	case err != nil:
		if first, err = tx.port.Resolve(context.Background(), dst.Lo); err != nil {
			return nil, noHop(tx, dst.Lo, err)
		}
	}
	if dst.Hi != dst.Lo {
		last, err := tx.port.NextHop(dst.Hi)
		if err != nil && !errors.As(err, &unknown) {
			return nil, noHop(tx, dst.Hi, err)
		}
		if last.Gateway != first.Gateway {
			return nil, &usageError{fmt.Sprintf("%s goes by %s and %s by another way, %s: one stream has one next hop", dst.Lo, first.Route, dst.Hi, last.Route),
				"--dst-ip with a range that one route holds, or --dst-mac " + macText(first.MAC)}
		}
	}
	return &first, nil
}

// noHop says why the destination MAC is not known and what to type instead.
func noHop(tx *endpoint, dst netip.Addr, err error) error {
	const mac = "--dst-mac 02:00:00:00:00:02"
	if errors.Is(err, unix.ENETUNREACH) {
		return &usageError{fmt.Sprintf("the destination MAC of %s is not known: %v", dst, err),
			fmt.Sprintf("%s, or a route: ip route add %s dev %s via ROUTER", mac, dst, tx.port.Name)}
	}
	return &usageError{fmt.Sprintf("the destination MAC of %s is not known: %v", dst, err), mac}
}

// hopText says in a line which next hop the frames take.
func hopText(s *trial.Spec) string {
	h := s.Via
	if !h.Gateway.IsValid() {
		return fmt.Sprintf("next hop: %s is on the link (%s), sent to %s", s.Stream.Stack.Dst, h.Route, macText(s.Stream.Stack.DstMAC))
	}
	return fmt.Sprintf("next hop: %s at %s (%s)", h.Gateway, macText(h.MAC), h.Route)
}

// hopDocument is the next hop in the specification of a document.
func hopDocument(h *nic.Hop, mac [6]byte) any {
	if h == nil {
		return nil
	}
	d := map[string]any{"mac": macText(mac), "route": h.Route, "gateway": nil}
	if h.Gateway.IsValid() {
		d["gateway"] = h.Gateway.String()
	}
	return d
}

// viaHop tells which next hop a trial takes, and primes the way through it.
func viaHop(ctx context.Context, s *trial.Spec, out *output) {
	if s.Via == nil {
		return
	}
	out.say("%s", hopText(s))
	if before := s.Attached; s.Via.Gateway.IsValid() {
		s.Attached = func() error {
			if before != nil {
				if err := before(); err != nil {
					return err
				}
			}
			return prime(ctx, s)
		}
	}
}

// primeMost is how many destinations are primed, the first of a range.
const primeMost = 64

// prime has every router on the way resolve its next hop for the destinations:
// the first frames of a trial would be lost to that. It runs once the carriers
// are back, because a router forgets what it knew.
func prime(ctx context.Context, s *trial.Spec) error {
	dst := s.Stream.Stack.Dst
	hi := dst
	if last := s.Stream.Flows.DstAddrs.Hi; last.IsValid() {
		hi = last
	}
	all := neighbor.Range{Lo: dst, Hi: hi}.First(primeMost)
	_, err := s.Tx.Port.Prime(ctx, all[0], all[1:]...)
	return err
}

// answers has both ends answer for the addresses of the stream that their
// kernels do not own, where a router asks for them or the user said so.
func (f *trialFlags) answers(fs *pflag.FlagSet, s *trial.Spec) error {
	on := f.answer
	if !fs.Changed("answer") {
		on = s.Via != nil && s.Via.Gateway.IsValid()
	}
	if s.Tx == nil || !on {
		return nil
	}
	st, fl := s.Stream.Stack, s.Stream.Flows
	for _, side := range []struct {
		end   *trial.End
		addrs frame.AddrRange
		one   netip.Addr
	}{{s.Tx, fl.SrcAddrs, st.Src}, {s.Rx, fl.DstAddrs, st.Dst}} {
		if side.end == nil {
			continue
		}
		own, err := side.end.Port.LocalAddrs()
		if err != nil {
			return err
		}
		if side.addrs == (frame.AddrRange{}) {
			side.addrs = frame.AddrRange{Lo: side.one, Hi: side.one}
		}
		r := neighbor.Range{Lo: side.addrs.Lo, Hi: side.addrs.Hi, Except: own}
		if len(r.First(1)) > 0 {
			side.end.Answers = []neighbor.Range{r}
		}
	}
	return nil
}
