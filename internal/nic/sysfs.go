package nic

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"linerate/internal/wire"
)

// Files of sysfs: the functions read*, count* open files below a directory and
// hand the bytes to parse*, which never touch a file.

// classDir is the directory of the port.
func (p *Port) classDir() string { return filepath.Join(p.roots.sys, "class/net", p.Name) }

// readSpeed gives the link speed, 0 if the device reports none: virtual devices
// without one give -1, and a link that is down gives EINVAL.
func readSpeed(dir string) wire.Speed {
	b, err := os.ReadFile(filepath.Join(dir, "speed"))
	if err != nil {
		return 0
	}
	return parseSpeed(string(b))
}

// parseSpeed reads Mbit/s; -1 (SPEED_UNKNOWN, also printed unsigned) is 0.
func parseSpeed(s string) wire.Speed {
	v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || v <= 0 || v >= math.MaxInt32 {
		return 0
	}
	return wire.Speed(v) * 1_000_000
}

// countQueues counts the queues in use: sysfs lists real_num_*_queues, while
// netlink's IFLA_NUM_*_QUEUES is what was allocated.
func countQueues(dir string) (rx, tx int) {
	entries, err := os.ReadDir(filepath.Join(dir, "queues"))
	if err != nil {
		return 0, 0
	}
	for _, e := range entries {
		switch kind, ok := parseQueueName(e.Name()); {
		case !ok:
		case kind == "rx":
			rx++
		default:
			tx++
		}
	}
	return rx, tx
}

// parseQueueName takes "rx-0" and "tx-12" apart.
func parseQueueName(s string) (kind string, ok bool) {
	kind, n, ok := strings.Cut(s, "-")
	if !ok || kind != "rx" && kind != "tx" {
		return "", false
	}
	_, err := strconv.ParseUint(n, 10, 16)
	return kind, err == nil
}

var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// readPCI gives the PCI address behind the interface, "" if there is none.
func readPCI(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, "device"))
	if err != nil {
		return ""
	}
	if base := filepath.Base(target); pciAddress.MatchString(base) {
		return base
	}
	return ""
}

// readNUMANode gives the node of the device, -1 if it has none.
func readNUMANode(dir string) int {
	v, err := readInt(filepath.Join(dir, "device/numa_node"))
	if err != nil {
		return -1
	}
	return int(v)
}

// readInt reads a file that holds one decimal number.
func readInt(path string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// CarrierChanges gives the number of times the carrier came or went since the
// device was made (sysfs carrier_changes), for seeing a flap between two reads.
func (p *Port) CarrierChanges() (uint64, error) {
	var n int64
	err := p.do("read carrier changes of", func() (err error) {
		n, err = readInt(filepath.Join(p.classDir(), "carrier_changes"))
		return err
	})
	if n < 0 {
		n = 0
	}
	return uint64(n), err
}
