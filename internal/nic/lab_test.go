package nic_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
	"linerate/internal/nic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab builds a lab that goes with the test. These tests cannot import nettest,
// which is built on this package.
func lab(t *testing.T, queues int) *veth.Lab {
	t.Helper()
	n, err := netns.New()
	switch {
	case err == nil:
		n.Close()
	case errors.Is(err, unix.EPERM) && os.Getenv("TEST_NO_SKIP") != "1":
		t.Skipf("missing CAP_SYS_ADMIN: %v", err)
	default:
		t.Fatal(err)
	}
	l, err := veth.Up(veth.Config{Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func port(t *testing.T, l *veth.Lab, e veth.End) *nic.Port {
	t.Helper()
	p, err := nic.Open(l.NS(e), veth.Interface)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func counters(t *testing.T, p *nic.Port) nic.Counters {
	t.Helper()
	c, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// inside runs f in one end's namespace with the interface at hand.
func inside(t *testing.T, l *veth.Lab, e veth.End, f func(netlink.Link) error) {
	t.Helper()
	err := l.NS(e).Do(func() error {
		k, err := netlink.LinkByName(veth.Interface)
		if err != nil {
			return err
		}
		return f(k)
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	xdpAborted = iota
	xdpDrop
	xdpPass
	xdpTx
)

// verdict is a program that answers every frame alike.
func verdict(v int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, v), asm.Return()}
}

// redirect is a program that sends every frame out of another interface.
func redirect(ifindex int) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(ifindex)), asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(), asm.Return(),
	}
}

func attach(t *testing.T, l *veth.Lab, e veth.End, ins asm.Instructions, flags link.XDPAttachFlags) link.Link {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "test_verdict", Type: ebpf.XDP, License: "GPL", Instructions: ins})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	index := port(t, l, e).Index
	var lk link.Link
	err = l.NS(e).Do(func() error {
		lk, err = link.AttachXDP(link.XDPOptions{Program: p, Interface: index, Flags: flags})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lk.Close() })
	return lk
}

// send sends n frames of 60 bytes from A, the way AF_XDP in copy mode does, and
// gives how many the kernel accepted and refused. The socket's buffer holds them
// all, so that nothing but the device makes it wait.
func send(t *testing.T, l *veth.Lab, n int) (accepted, refused uint64) {
	t.Helper()
	index := port(t, l, veth.A).Index
	frame := make([]byte, 60)
	dst, src := veth.MAC(veth.B), veth.MAC(veth.A)
	copy(frame, dst[:])
	copy(frame[6:], src[:])
	frame[12], frame[13] = 0x88, 0xb5 // local experimental EtherType
	err := l.NS(veth.A).Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16<<20); err != nil {
			return err
		}
		for int(accepted+refused) < n {
			switch err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: index}); err {
			case nil:
				accepted++
			case unix.ENOBUFS:
				refused++
			default:
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return accepted, refused
}

// settled reads the counters until two readings are alike.
func settled(t *testing.T, p *nic.Port) nic.Counters {
	t.Helper()
	last := counters(t, p)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		c := counters(t, p)
		if *c.Read(nic.RoleDeviceRx).Frames == *last.Read(nic.RoleDeviceRx).Frames {
			return c
		}
		last = c
	}
	t.Fatal("the counters do not come to rest")
	return last
}
