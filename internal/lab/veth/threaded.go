package veth

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// NAPIThread is a kernel thread that polls one receive queue.
type NAPIThread struct {
	TID  int // thread id on the host
	NAPI int // NAPI id; within one end it rises with the queue
}

// SetThreadedNAPI moves the receive work of one end out of the sender's softirq
// into kernel threads of its own (on), or back (off). On a veth NAPI exists
// only while a program is attached in native mode or GRO is on: before that the
// kernel refuses (EOPNOTSUPP on 6.18, EIO on others). The setting outlives a
// detach and comes back into force with the next program; the threads are new
// then and must be pinned again.
func (l *Lab) SetThreadedNAPI(e End, on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	err := l.ends[e].Do(func() error {
		return os.WriteFile("/sys/class/net/"+Interface+"/threaded", []byte(value), 0)
	})
	if err != nil {
		return &Error{"set threaded NAPI of end " + e.String() + " of", l.cfg.Name, err}
	}
	return nil
}

// NAPIThreads gives the threads that serve one end, in the order of its queues;
// none if its NAPI is not threaded. The threads are called napi/lr0-<NAPI id> on
// every lab of the host, so the kernel is asked which of them are this end's
// (netdev generic netlink, Linux 6.8 and later; an *Error wrapping ErrNoNAPI
// before).
func (l *Lab) NAPIThreads(e End) ([]NAPIThread, error) {
	threads, err := napiThreads("/proc")
	if err == nil {
		err = l.ends[e].Do(func() error {
			threads, err = ownNAPI(threads)
			return err
		})
	}
	if err != nil {
		return nil, &Error{"list NAPI threads of end " + e.String() + " of", l.cfg.Name, err}
	}
	return threads, nil
}

// PinNAPI binds the threads of one end to processors, queue i to cpus[i mod
// len(cpus)]. An end without threads is an error: nothing would be pinned.
func (l *Lab) PinNAPI(e End, cpus ...int) error {
	threads, err := l.NAPIThreads(e)
	if err != nil {
		return err
	}
	op := "pin NAPI of end " + e.String() + " of"
	if len(threads) == 0 || len(cpus) == 0 {
		return &Error{op, l.cfg.Name, fmt.Errorf("%d threads, %d processors", len(threads), len(cpus))}
	}
	for i, t := range threads {
		var set unix.CPUSet
		set.Set(cpus[i%len(cpus)])
		if err := unix.SchedSetaffinity(t.TID, &set); err != nil {
			return &Error{op, l.cfg.Name, fmt.Errorf("thread %d to processor %d: %w", t.TID, cpus[i%len(cpus)], needs(err, "CAP_SYS_NICE"))}
		}
	}
	return nil
}

// napiThreads finds the NAPI threads of every lab by their names, by rising id.
func napiThreads(proc string) ([]NAPIThread, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var threads []NAPIThread
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(proc, e.Name(), "comm"))
		if err != nil {
			continue // ended meanwhile
		}
		if id, ok := parseNAPIComm(string(comm)); ok {
			threads = append(threads, NAPIThread{TID: tid, NAPI: id})
		}
	}
	slices.SortFunc(threads, func(a, b NAPIThread) int { return a.NAPI - b.NAPI })
	return threads, nil
}

// parseNAPIComm reads the id from "napi/lr0-8195".
func parseNAPIComm(comm string) (id int, ok bool) {
	s, ok := strings.CutPrefix(strings.TrimSuffix(comm, "\n"), "napi/"+Interface+"-")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}

// ErrNoNAPI is the cause on kernels that do not say whose a NAPI id is.
var ErrNoNAPI = errors.New("this kernel does not say which device a NAPI id belongs to (Linux 6.8 does)")

// Netlink of Documentation/netlink/specs/netdev.yaml.
const (
	netdevCmdNAPIGet   = 11
	netdevANAPIIfindex = 1
	netdevANAPIID      = 2
)

// ownNAPI keeps the threads of the lab's interface in this thread's namespace.
// It asks for one id at a time: a dump's messages lack NLM_F_MULTI (6.18), and
// the library stops after the first of them.
func ownNAPI(threads []NAPIThread) (own []NAPIThread, err error) {
	link, err := netlink.LinkByName(Interface)
	if err != nil {
		return nil, err
	}
	family, err := netlink.GenlFamilyGet("netdev")
	if errors.Is(err, unix.ENOENT) {
		return nil, ErrNoNAPI
	}
	if err != nil {
		return nil, fmt.Errorf("find netdev generic netlink: %w", err)
	}
	for _, t := range threads {
		req := nl.NewNetlinkRequest(int(family.ID), 0)
		req.AddData(genlHeader{netdevCmdNAPIGet, 1})
		req.AddData(nl.NewRtAttr(netdevANAPIID, nl.Uint32Attr(uint32(t.NAPI))))
		msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
		switch {
		case errors.Is(err, unix.ENOENT): // of another namespace, or gone
			continue
		case errors.Is(err, unix.EOPNOTSUPP):
			return nil, ErrNoNAPI
		case err != nil:
			return nil, fmt.Errorf("look up NAPI %d: %w", t.NAPI, err)
		}
		if len(msgs) > 0 && parseNAPI(msgs[0]) == link.Attrs().Index {
			own = append(own, t)
		}
	}
	return own, nil
}

// genlHeader is struct genlmsghdr. The library's own leaves the reserved bytes
// to chance, which the kernel refuses with EINVAL now and then.
type genlHeader [4]byte

// Len is part of the library's interface of a request, as is Serialize.
func (h genlHeader) Len() int { return len(h) }

// Serialize gives the header's bytes.
func (h genlHeader) Serialize() []byte { return h[:] }

// parseNAPI reads the interface index from the answer about one NAPI id, 0 if
// there is none.
func parseNAPI(m []byte) (ifindex int) {
	if len(m) < nl.SizeofGenlmsg {
		return 0
	}
	attrs, err := nl.ParseRouteAttr(m[nl.SizeofGenlmsg:])
	if err != nil {
		return 0
	}
	for _, a := range attrs {
		if a.Attr.Type == netdevANAPIIfindex && len(a.Value) >= 4 {
			return int(binary.NativeEndian.Uint32(a.Value))
		}
	}
	return 0
}
