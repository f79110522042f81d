package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"linerate/internal/frame"
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

// Limits of priming: destinations, and the time for all of them.
const (
	primeMost = 64
	primeTime = 3 * time.Second
)

// prime has every router on the way resolve its next hop for the destinations,
// the first of a range: the first frames of a trial would be lost to that. It
// runs once the carriers are back, because a router forgets what it knew.
func prime(ctx context.Context, s *trial.Spec) error {
	ctx, cancel := context.WithTimeout(ctx, primeTime)
	defer cancel()
	to := s.Stream.Stack.Dst
	last := s.Stream.Flows.DstAddrs.Hi
	for range primeMost {
		// Who does not answer may be reached all the same.
		if _, err := s.Tx.Port.Prime(ctx, to); err != nil && ctx.Err() == nil {
			return err
		}
		if !to.Less(last) || ctx.Err() != nil {
			break
		}
		to = to.Next()
	}
	return nil
}
