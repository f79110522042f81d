package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"linerate/internal/frame"
	"linerate/internal/nic"
)

// Defaults of the addresses: RFC 2544's own range (RFC 2544 appendix C.2.2).
const (
	defaultSrcIP   = "198.18.0.1"
	defaultDstIP   = "198.18.0.2"
	defaultSrcPort = 49184
	defaultDstPort = 7777
)

// stackFlags are the headers of the frames.
type stackFlags struct {
	srcMAC, dstMAC, srcIP, dstIP, srcPort, dstPort string
	vlan                                           []string

	given func(flag string) bool // whether the user gave it, once the flags are read
}

func (f *stackFlags) register(fs *pflag.FlagSet) {
	f.given = fs.Changed
	fs.StringVar(&f.srcMAC, "src-mac", "", "source MAC (default: the interface's own)")
	fs.StringVar(&f.dstMAC, "dst-mac", "", "destination MAC (default: with --dst-ip the next hop's, else the other end's)")
	fs.StringSliceVar(&f.vlan, "vlan", nil, "802.1Q VLAN id; twice for QinQ, the outer first")
	fs.StringVar(&f.srcIP, "src-ip", defaultSrcIP, "source address or range a-b, IPv4 or IPv6 (with --dst-ip: the one the route prefers)")
	fs.StringVar(&f.dstIP, "dst-ip", defaultDstIP, "destination address or range a-b")
	fs.StringVar(&f.srcPort, "src-port", strconv.Itoa(defaultSrcPort), "source UDP port or range a-b")
	fs.StringVar(&f.dstPort, "dst-port", strconv.Itoa(defaultDstPort), "destination UDP port or range a-b")
}

// build makes the headers and the flows from the flags and the ends. The hop is
// the one that the routes name for the destination, nil where none was asked for.
func (f *stackFlags) build(flows int, tx, rx *endpoint) (frame.Stack, frame.Flows, *nic.Hop, error) {
	var st frame.Stack
	var fl frame.Flows
	var err error
	fail := func(flag, value string, err error, try string) (frame.Stack, frame.Flows, *nic.Hop, error) {
		return st, fl, nil, &usageError{fmt.Sprintf("--%s %s: %v", flag, value, err), try}
	}
	if fl.DstAddrs.Lo, fl.DstAddrs.Hi, err = parseAddrs(f.dstIP); err != nil {
		return fail("dst-ip", f.dstIP, err, "--dst-ip 198.18.0.2")
	}
	if fl.SrcPorts.Lo, fl.SrcPorts.Hi, err = parsePorts(f.srcPort); err != nil {
		return fail("src-port", f.srcPort, err, "--src-port 49184")
	}
	if fl.DstPorts.Lo, fl.DstPorts.Hi, err = parsePorts(f.dstPort); err != nil {
		return fail("dst-port", f.dstPort, err, "--dst-port 7777")
	}
	if st.VLANs, err = parseVLANs(f.vlan); err != nil {
		return fail("vlan", strings.Join(f.vlan, ","), err, "--vlan 100")
	}
	st.Dst, st.SrcPort, st.DstPort = fl.DstAddrs.Lo, fl.SrcPorts.Lo, fl.DstPorts.Lo
	st.TTL = 64
	if fl.SrcAddrs.Lo, fl.SrcAddrs.Hi, err = parseAddrs(f.srcIP); err != nil {
		return fail("src-ip", f.srcIP, err, "--src-ip 198.18.0.1")
	}
	hop, err := f.macs(&st, fl.DstAddrs, tx, rx)
	if err != nil {
		return st, fl, nil, err
	}
	if hop != nil && hop.Source.IsValid() && f.given("dst-ip") && !f.given("src-ip") {
		fl.SrcAddrs = frame.AddrRange{Lo: hop.Source, Hi: hop.Source}
	}
	st.Src = fl.SrcAddrs.Lo
	if fl, err = spreadFlows(fl, flows); err != nil {
		return fail("flows", strconv.Itoa(flows), err, "--flows 1, or wider ranges for more")
	}
	return st, fl, hop, nil
}

// macs fills in the MAC addresses: what the user said, else what is known.
func (f *stackFlags) macs(st *frame.Stack, dst frame.AddrRange, tx, rx *endpoint) (*nic.Hop, error) {
	st.SrcMAC = tx.port.MAC
	if f.srcMAC != "" {
		mac, err := parseMAC(f.srcMAC)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("--src-mac %s: %v", f.srcMAC, err), "--src-mac 02:00:00:00:00:01"}
		}
		st.SrcMAC = mac
	}
	if f.dstMAC != "" {
		mac, err := parseMAC(f.dstMAC)
		if err != nil {
			return nil, &usageError{fmt.Sprintf("--dst-mac %s: %v", f.dstMAC, err), "--dst-mac 02:00:00:00:00:02"}
		}
		st.DstMAC = mac
		return nil, nil
	}
	if rx != nil {
		st.DstMAC = rx.port.MAC
		if !f.given("dst-ip") {
			return nil, nil
		}
	}
	hop, err := nextHop(tx, dst, rx != nil)
	if hop != nil && (rx == nil || hop.Gateway.IsValid()) {
		st.DstMAC = hop.MAC
	}
	return hop, err
}

// spreadFlows widens the source ports so that there are n flows, unless the
// user's ranges already hold that many.
func spreadFlows(fl frame.Flows, n int) (frame.Flows, error) {
	if n < 1 {
		return fl, fmt.Errorf("want at least 1")
	}
	fl.Count = n
	single := fl.SrcPorts.Lo == fl.SrcPorts.Hi && fl.DstPorts.Lo == fl.DstPorts.Hi &&
		fl.SrcAddrs.Lo == fl.SrcAddrs.Hi && fl.DstAddrs.Lo == fl.DstAddrs.Hi
	if n == 1 && !single {
		fl.Count = 0 // ranges without a number: every combination
		return fl, nil
	}
	if single && n > 1 {
		if int(fl.SrcPorts.Lo)+n-1 > 65535 {
			return fl, fmt.Errorf("source ports from %d hold only %d flows", fl.SrcPorts.Lo, 65536-int(fl.SrcPorts.Lo))
		}
		fl.SrcPorts.Hi = fl.SrcPorts.Lo + uint16(n-1)
	}
	return fl, nil
}

func parseMAC(s string) ([6]byte, error) {
	var mac [6]byte
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != 6 {
		return mac, fmt.Errorf("not an Ethernet address")
	}
	copy(mac[:], hw)
	return mac, nil
}

func parseAddrs(s string) (lo, hi netip.Addr, err error) {
	a, b, isRange := strings.Cut(s, "-")
	if lo, err = netip.ParseAddr(a); err != nil {
		return lo, hi, fmt.Errorf("not an address")
	}
	if !isRange {
		return lo, lo, nil
	}
	if hi, err = netip.ParseAddr(b); err != nil || lo.Is4() != hi.Is4() || hi.Less(lo) {
		return lo, hi, fmt.Errorf("not a range of addresses")
	}
	return lo, hi, nil
}

func parsePorts(s string) (lo, hi uint16, err error) {
	a, b, isRange := strings.Cut(s, "-")
	if !isRange {
		b = a
	}
	x, err1 := strconv.ParseUint(a, 10, 16)
	y, err2 := strconv.ParseUint(b, 10, 16)
	if err1 != nil || err2 != nil || y < x {
		return 0, 0, fmt.Errorf("not a port or a range of ports")
	}
	return uint16(x), uint16(y), nil
}

// parseVLANs reads VLAN ids, outermost first; the outer of two is a service
// tag (IEEE 802.1ad).
func parseVLANs(ids []string) ([]frame.VLAN, error) {
	if len(ids) > 2 {
		return nil, fmt.Errorf("at most two tags")
	}
	var out []frame.VLAN
	for i, s := range ids {
		id, err := strconv.ParseUint(s, 10, 16)
		if err != nil || id > 4094 {
			return nil, fmt.Errorf("a VLAN id is 0 to 4094")
		}
		tpid := uint16(0x8100)
		if len(ids) == 2 && i == 0 {
			tpid = 0x88a8
		}
		out = append(out, frame.VLAN{TPID: tpid, ID: uint16(id)})
	}
	return out, nil
}
