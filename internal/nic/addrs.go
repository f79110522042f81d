package nic

import (
	"net/netip"

	"github.com/vishvananda/netlink"
)

// LocalAddrs are the addresses of the port's namespace, on whichever interface:
// its kernel answers for all of them on each (arp_ignore, ip-sysctl.rst).
func (p *Port) LocalAddrs() (out []netip.Addr, err error) {
	err = p.do("read addresses beside", func() error {
		all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
		if err != nil {
			return err
		}
		for _, a := range all {
			out = append(out, toAddr(a.IP))
		}
		return nil
	})
	return out, err
}
