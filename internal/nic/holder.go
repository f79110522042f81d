package nic

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

// QueueHolder says who holds a queue of a port with an AF_XDP socket, for an
// error message; "" if nobody is found.
//
// Where the kernel has XDP_DIAG the socket of that very queue is looked up and
// guess is false. Elsewhere every process of the namespace that has AF_XDP
// rings mapped is named and guess is true: /proc/PID/maps shows a socket mapped
// at the ring offsets of if_xdp.h, but not which queue it is bound to. That
// could be read without XDP_DIAG by a BPF task_file iterator, which is not
// built. Processes of other users need CAP_SYS_PTRACE to be seen.
func QueueHolder(p *Port, queue int) (desc string, guess bool) {
	inode, err := p.boundSocket(queue)
	holders := ringHolders(p.roots.proc)
	if err == nil {
		return nameHolder(holders, inode), false
	}
	var names []string
	for _, h := range holders {
		if len(h.netns) == 0 || slices.Contains(h.netns, fmt.Sprintf("net:[%d]", p.NS.Inum())) || h.self {
			names = append(names, h.String())
		}
	}
	return strings.Join(names, ", "), true
}

// boundSocket asks XDP_DIAG for the socket bound to a queue; 0 if there is none.
func (p *Port) boundSocket(queue int) (inode uint32, err error) {
	err = p.do("look for the holder of a queue of", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		sockets, err := netlink.SocketDiagXDP()
		for _, s := range sockets {
			if s.XDPInfo != nil && s.XDPDiagMsg != nil &&
				int(s.XDPInfo.Ifindex) == l.Attrs().Index && int(s.XDPInfo.QueueID) == queue {
				inode = s.XDPDiagMsg.Ino
			}
		}
		return err
	})
	return inode, err
}

// threadSpaces lists the network namespaces that a process's threads are in: the
// main thread need not be where the sockets are.
func threadSpaces(dir string) (spaces []string) {
	links, err := filepath.Glob(filepath.Join(dir, "task/*/ns/net"))
	if err != nil {
		return nil
	}
	for _, l := range links {
		if space, err := os.Readlink(l); err == nil && !slices.Contains(spaces, space) {
			spaces = append(spaces, space)
		}
	}
	return spaces
}

// nameHolder finds the process that has the socket's rings.
func nameHolder(holders []holder, inode uint32) string {
	if inode == 0 {
		return ""
	}
	for _, h := range holders {
		if slices.Contains(h.inodes, inode) {
			return h.String()
		}
	}
	return fmt.Sprintf("socket %d of a process that cannot be seen", inode)
}

// holder is a process with AF_XDP rings.
type holder struct {
	pid    int
	comm   string
	netns  []string // of its threads, none if they may not be read
	self   bool     // this very process, whose threads are in many namespaces
	inodes []uint32
}

// String names the process for an error message.
func (h holder) String() string {
	if h.comm == "" {
		return fmt.Sprintf("process %d", h.pid)
	}
	return fmt.Sprintf("process %d (%s)", h.pid, h.comm)
}

// ringHolders looks through all processes that may be seen, by rising pid.
func ringHolders(proc string) (holders []holder) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, e.Name())
		maps, err := os.ReadFile(filepath.Join(dir, "maps"))
		if err != nil {
			continue
		}
		h := holder{pid: pid, self: pid == os.Getpid()}
		for line := range strings.Lines(string(maps)) {
			if inode, ok := parseRingMapping(line); ok && !slices.Contains(h.inodes, inode) {
				h.inodes = append(h.inodes, inode)
			}
		}
		if len(h.inodes) == 0 {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
		h.comm = strings.TrimSpace(string(comm))
		h.netns = threadSpaces(dir)
		holders = append(holders, h)
	}
	slices.SortFunc(holders, func(a, b holder) int { return a.pid - b.pid })
	return holders
}

// parseRingMapping reads the socket's inode from a line of /proc/PID/maps that
// maps an AF_XDP TX, fill or completion ring. The RX ring is mapped at offset
// 0, where an AF_PACKET ring would be as well, so it is not taken as a sign; an
// AF_XDP socket cannot work without fill or completion ring.
func parseRingMapping(line string) (inode uint32, ok bool) {
	f := strings.Fields(line)
	if len(f) != 6 || !strings.HasPrefix(f[5], "socket:[") {
		return 0, false
	}
	switch f[2] {
	case "80000000", "100000000", "180000000":
	default:
		return 0, false
	}
	n, err := strconv.ParseUint(f[4], 10, 32)
	return uint32(n), err == nil && f[5] == "socket:["+f[4]+"]"
}
