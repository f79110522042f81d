package main

import (
	"fmt"
	"strconv"
	"strings"

	"linerate/bpf"
)

// parseSteer reads what a receiver takes from the interface: tag, all, or any
// of port:N, vlan:N and mac:ADDRESS, joined by commas. The rest stays with the
// host's stack.
func parseSteer(s string) (bpf.SteerConfig, error) {
	var c bpf.SteerConfig
	for part := range strings.SplitSeq(s, ",") {
		kind, value, _ := strings.Cut(part, ":")
		var err error
		switch kind {
		case "tag":
			c.Match |= bpf.MatchTag
		case "all":
			c.Match |= bpf.MatchAll
		case "port":
			var lo, hi uint16
			if lo, hi, err = parsePorts(value); err == nil {
				c.Match |= bpf.MatchPorts
				for p := int(lo); p <= int(hi); p++ {
					c.Ports = append(c.Ports, uint16(p))
				}
			}
		case "vlan":
			var id uint64
			if id, err = strconv.ParseUint(value, 10, 16); err == nil && id > 4095 {
				err = fmt.Errorf("a VLAN id is 0 to 4095")
			}
			c.Match |= bpf.MatchVLANs
			c.VLANs = append(c.VLANs, uint16(id))
		case "mac":
			var mac [6]byte
			mac, err = parseMAC(value)
			c.Match |= bpf.MatchMACs
			c.MACs = append(c.MACs, mac)
		default:
			err = fmt.Errorf("no kind %q", kind)
		}
		if err != nil {
			return c, &usageError{fmt.Sprintf("--steer %s: %v", part, err), "--steer tag, all, port:7777, vlan:100 or mac:02:00:00:00:00:02"}
		}
	}
	return c, nil
}
