package nic

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is what a result says about the host it was measured on.
type Host struct {
	Kernel       string // uname -r
	Architecture string // uname -m
	CPU          string // "" if unknown
	CPUs         int    // processors this process may run on
	Hypervisor   bool   // the processor says that it is a virtual one
	Cmdline      string // kernel command line
}

// HostFacts reads the facts of this host; what cannot be read is "" or 0.
func HostFacts() Host { return readHost(kernelRoots.proc) }

func readHost(proc string) Host {
	h := Host{CPUs: runtime.NumCPU()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
		h.Architecture = unix.ByteSliceToString(u.Machine[:])
	}
	if b, err := os.ReadFile(filepath.Join(proc, "cpuinfo")); err == nil {
		h.CPU, h.Hypervisor = parseCPUInfo(string(b))
	}
	if b, err := os.ReadFile(filepath.Join(proc, "cmdline")); err == nil {
		h.Cmdline = strings.TrimSpace(string(b))
	}
	return h
}

// parseCPUInfo reads the model and the hypervisor flag of the first processor
// of /proc/cpuinfo (x86 "model name"; elsewhere "Model" or "Hardware").
func parseCPUInfo(s string) (model string, hypervisor bool) {
	for line := range strings.Lines(s) {
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name", "Model", "Hardware":
			if model == "" {
				model = strings.Join(strings.Fields(value), " ")
			}
		case "flags":
			for _, f := range strings.Fields(value) {
				hypervisor = hypervisor || f == "hypervisor"
			}
		}
	}
	return model, hypervisor
}
