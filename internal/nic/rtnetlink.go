package nic

import (
	"context"
	"encoding/binary"
	"errors"
	"os"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linkState is what one link message says of a port.
type linkState struct {
	index, mtu int
	name       string
	up         bool   // administratively up and with carrier
	changes    uint32 // IFLA_CARRIER_CHANGES
}

// linkMessage is one notification.
type linkMessage struct {
	linkState
	deleted bool
	missed  bool // the socket's buffer overflowed: state unknown
}

func running(flags uint32) bool {
	const want = unix.IFF_UP | unix.IFF_LOWER_UP
	return flags&want == want
}

// linkSocket opens a socket that gets every link notification of this
// thread's namespace from now on.
func linkSocket() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.RTNLGRP_LINK - 1)})
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "rtnetlink"), nil
}

// askLink asks for the state of one interface in this thread's namespace; an
// interface that does not exist is ENODEV.
func askLink(index int) (linkState, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return linkState{}, err
	}
	for _, b := range answers {
		if s, ok := parseLink(b); ok && s.index == index {
			return s, nil
		}
	}
	return linkState{}, errors.New("no answer about the interface")
}

// readLinks passes on the notifications about one interface until the socket
// is closed or ctx ends.
func readLinks(ctx context.Context, sock *os.File, index int, out chan<- linkMessage) {
	buf := make([]byte, 64<<10)
	for {
		n, err := sock.Read(buf)
		messages := parseLinks(buf[:max(n, 0)])
		switch {
		case errors.Is(err, unix.ENOBUFS):
			messages = []linkMessage{{linkState: linkState{index: index}, missed: true}}
		case err != nil:
			return
		}
		for _, m := range messages {
			if m.index != index {
				continue
			}
			select {
			case out <- m:
			case <-ctx.Done():
				return
			}
		}
	}
}

// parseLinks takes a datagram of netlink messages apart; what is cut short or
// not about links is left out.
func parseLinks(b []byte) (out []linkMessage) {
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b))
		kind := binary.NativeEndian.Uint16(b[4:])
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return out
		}
		if kind == unix.RTM_NEWLINK || kind == unix.RTM_DELLINK {
			if s, ok := parseLink(b[unix.NLMSG_HDRLEN:size]); ok {
				out = append(out, linkMessage{linkState: s, deleted: kind == unix.RTM_DELLINK})
			}
		}
		b = b[min(align4(size), len(b)):]
	}
	return out
}

// parseLink reads struct ifinfomsg and the attributes behind it. A message of
// another family (bridge ports send such) says nothing about the link.
func parseLink(b []byte) (s linkState, ok bool) {
	if len(b) < unix.SizeofIfInfomsg || b[0] != unix.AF_UNSPEC {
		return s, false
	}
	s.index = int(int32(binary.NativeEndian.Uint32(b[4:])))
	s.up = running(binary.NativeEndian.Uint32(b[8:]))
	b = b[unix.SizeofIfInfomsg:]
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		kind := binary.NativeEndian.Uint16(b[2:])
		if size < unix.SizeofRtAttr || size > len(b) {
			return s, false
		}
		switch v := b[unix.SizeofRtAttr:size]; {
		case kind == unix.IFLA_IFNAME:
			s.name = clean(string(v))
		case kind == unix.IFLA_MTU && len(v) == 4:
			s.mtu = int(binary.NativeEndian.Uint32(v))
		case kind == unix.IFLA_CARRIER_CHANGES && len(v) == 4:
			s.changes = binary.NativeEndian.Uint32(v)
		}
		b = b[min(align4(size), len(b)):]
	}
	return s, true
}

func align4(n int) int { return (n + 3) &^ 3 }
