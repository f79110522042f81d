package nic

import (
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

const (
	sshPort        = 22
	tcpEstablished = 1
)

// CarriesSSH says whether the port carries a secure shell connection: one with
// an address of the port as local address that is either the connection of the
// caller's own session (SSH_CONNECTION) or any established one to local port
// 22. The environment counts in whatever namespace the port is; established
// connections are those of its own namespace.
func (p *Port) CarriesSSH() (bool, error) {
	return p.carriesSSH(os.Getenv("SSH_CONNECTION"))
}

func (p *Port) carriesSSH(session string) (bool, error) {
	var local []netip.Addr
	if a, ok := parseSSHConnection(session); ok {
		local = append(local, a)
	}
	found := false
	err := p.do("look for secure shell connections on", func() error {
		l, err := p.link()
		if err != nil {
			return err
		}
		more, err := readSSHLocals(p.roots.proc)
		if err != nil {
			return err
		}
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, a := range addrs {
			for _, have := range append(local, more...) {
				found = found || toAddr(a.IP) == have
			}
		}
		return nil
	})
	return found, err
}

// parseSSHConnection reads "client port server port" and gives the server's
// address, which is ours.
func parseSSHConnection(s string) (netip.Addr, bool) {
	f := strings.Fields(s)
	if len(f) != 4 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(f[2])
	return a.WithZone("").Unmap(), err == nil
}

// readSSHLocals gives the local addresses of established connections to port
// 22 in the thread's namespace.
func readSSHLocals(proc string) (local []netip.Addr, err error) {
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(filepath.Join(proc, "thread-self/net", name))
		if errors.Is(err, os.ErrNotExist) {
			continue // kernel without IPv6
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			at, state, ok := parseTCPLine(line)
			if ok && at.Port() == sshPort && state == tcpEstablished {
				local = append(local, at.Addr())
			}
		}
	}
	return local, nil
}

// parseTCPLine reads local address and state from a line of /proc/net/tcp or
// tcp6. The title line and anything else is not ok.
func parseTCPLine(line string) (local netip.AddrPort, state int, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || !strings.HasSuffix(f[0], ":") {
		return local, 0, false
	}
	local, ok = parseTCPAddr(f[1])
	s, err := strconv.ParseUint(f[3], 16, 8)
	return local, int(s), ok && err == nil
}

// parseTCPAddr reads "0100007F:0016": 32-bit words as the host holds them, in
// hexadecimal, on the little endian hosts we run on. An IPv4 address in IPv6
// form is given as IPv4.
func parseTCPAddr(s string) (netip.AddrPort, bool) {
	host, port, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || len(host) != 8 && len(host) != 32 {
		return netip.AddrPort{}, false
	}
	b, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		b[i], b[i+1], b[i+2], b[i+3] = b[i+3], b[i+2], b[i+1], b[i]
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}
