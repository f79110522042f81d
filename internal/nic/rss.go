package nic

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"linerate/internal/rss"
)

// RSS reads how the port spreads what it receives: key and indirection table
// (ethtool -x) and what it hashes of UDP (ethtool -n ... rx-flow-hash). It is
// nil where the device has none of its own, or another hash than Toeplitz; what
// it does not say is missing in it.
func (p *Port) RSS() (c *rss.Config, err error) {
	err = p.do("read receive side scaling of", func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if c = readTable(fd, p.Name); c != nil {
			c.UDP4, c.UDP6 = readFields(fd, p.Name, flowUDP4), readFields(fd, p.Name, flowUDP6)
		}
		return nil
	})
	return c, err
}

// Layouts and values of include/uapi/linux/ethtool.h.
const (
	rxfhBytes    = 24 // struct ethtool_rxfh without its array
	rxnfcBytes   = 192
	hashToeplitz = 1 << 0      // ETH_RSS_HASH_TOP
	flowUDP4     = 0x02        // UDP_V4_FLOW
	flowUDP6     = 0x06        // UDP_V6_FLOW
	hashAddrs    = 1<<4 | 1<<5 // RXH_IP_SRC, RXH_IP_DST
	hashPorts    = 1<<6 | 1<<7 // RXH_L4_B_0_1, RXH_L4_B_2_3
	mostEntries  = 1 << 16
)

// readTable asks for the sizes first, then for table and key.
func readTable(fd int, name string) *rss.Config {
	head := make([]byte, rxfhBytes)
	binary.NativeEndian.PutUint32(head, unix.ETHTOOL_GRSSH)
	if ethtoolCall(fd, name, head) != nil {
		return nil
	}
	entries, keyBytes := binary.NativeEndian.Uint32(head[8:]), binary.NativeEndian.Uint32(head[12:])
	if entries > mostEntries || keyBytes > mostEntries {
		return nil
	}
	all := make([]byte, rxfhBytes+4*entries+keyBytes)
	copy(all, head)
	if ethtoolCall(fd, name, all) != nil {
		return nil
	}
	return parseTable(all)
}

// parseTable takes struct ethtool_rxfh apart; nil: it says nothing of use.
func parseTable(b []byte) *rss.Config {
	if len(b) < rxfhBytes {
		return nil
	}
	entries, keyBytes := uint64(binary.NativeEndian.Uint32(b[8:])), uint64(binary.NativeEndian.Uint32(b[12:]))
	rest := b[rxfhBytes:]
	// The field of the hash function is 0 where the driver does not say: then it is Toeplitz.
	if hash := b[16]; hash != 0 && hash != hashToeplitz || entries == 0 || keyBytes == 0 || uint64(len(rest)) < 4*entries+keyBytes {
		return nil
	}
	c := &rss.Config{Key: rest[4*entries:][:keyBytes]}
	for i := range entries {
		c.Table = append(c.Table, binary.NativeEndian.Uint32(rest[4*i:]))
	}
	return c
}

// readFields asks what is hashed of one kind of flow (struct ethtool_rxnfc).
func readFields(fd int, name string, flow uint32) *rss.Fields {
	b := make([]byte, rxnfcBytes)
	binary.NativeEndian.PutUint32(b, unix.ETHTOOL_GRXFH)
	binary.NativeEndian.PutUint32(b[4:], flow)
	if ethtoolCall(fd, name, b) != nil {
		return nil
	}
	return parseFields(binary.NativeEndian.Uint64(b[8:]))
}

// parseFields reads RXH_ flags; a mixture that no Toeplitz input has is unknown.
func parseFields(flags uint64) *rss.Fields {
	f := &rss.Fields{Addrs: flags&hashAddrs == hashAddrs, Ports: flags&hashPorts == hashPorts}
	if known := flags &^ (hashAddrs | hashPorts); known != 0 || !f.Addrs || flags&hashPorts != 0 && !f.Ports {
		return nil
	}
	return f
}

// ethtoolCall makes one SIOCETHTOOL call with data, which the kernel fills in.
func ethtoolCall(fd int, name string, data []byte) error {
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of struct ifreq
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&data[0])
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return errno
	}
	return nil
}
