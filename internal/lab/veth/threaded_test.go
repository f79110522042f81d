package veth

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attachPass attaches a program in native mode that passes every frame.
func attachPass(t *testing.T, l *Lab, e End) link.Link {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R0, 2), asm.Return(), // XDP_PASS
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	index := port(t, l, e).Index
	var lk link.Link
	err = l.NS(e).Do(func() error {
		lk, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: index, Flags: link.XDPDriverMode})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lk.Close() })
	return lk
}

func TestThreadedNAPI(t *testing.T) {
	l, other := up(t, Config{Queues: 2}), up(t, Config{Queues: 1})
	if err := l.SetThreadedNAPI(B, true); err == nil {
		t.Error("threaded NAPI without NAPI was accepted")
	}
	if th, err := l.NAPIThreads(B); err != nil || len(th) != 0 {
		t.Errorf("threads before: %v, %v", th, err)
	}
	attachPass(t, l, B)
	attachPass(t, other, B)
	for _, lab := range []*Lab{l, other} {
		if err := lab.SetThreadedNAPI(B, true); err != nil {
			t.Fatal(err)
		}
	}
	th, err := l.NAPIThreads(B)
	if err != nil || len(th) != 2 || th[0].NAPI >= th[1].NAPI {
		t.Fatalf("threads: %v, %v; want this end's two, in order", th, err)
	}
	last, set := lastCPU(t), unix.CPUSet{}
	if err := l.PinNAPI(B, last); err != nil {
		t.Fatal(err)
	}
	for _, x := range th {
		if err := unix.SchedGetaffinity(x.TID, &set); err != nil || set.Count() != 1 || !set.IsSet(last) {
			t.Errorf("thread %d: affinity %v, %v", x.TID, set, err)
		}
	}
	if err := l.SetThreadedNAPI(B, false); err != nil {
		t.Fatal(err)
	}
	if err := l.PinNAPI(A, 0); err == nil {
		t.Error("pinning an end without threads said nothing")
	}
}

// lastCPU is a processor that this process may use.
func lastCPU(t *testing.T) (last int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			last = cpu
		}
	}
	return last
}

func TestNAPIThreadsByName(t *testing.T) {
	proc := t.TempDir()
	for pid, comm := range map[string]string{
		"10": "napi/lr0-300\n", "11": "napi/lr0-299\n", "12": "napi/eth0-1\n", "13": "napi/lr0-\n", "self": "napi/lr0-1\n",
	} {
		if err := os.Mkdir(filepath.Join(proc, pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "comm"), []byte(comm), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	th, err := napiThreads(proc)
	if err != nil || len(th) != 2 || th[0] != (NAPIThread{11, 299}) || th[1] != (NAPIThread{10, 300}) {
		t.Errorf("%v, %v", th, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("napi/lr0-12", "linerate pid=1 start=2 keep=true", "1 (a) b) S 1 2", []byte("\x01\x01\x00\x00\x08\x00\x01\x00\x02\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, comm, alias, stat string, msg []byte) {
		if id, ok := parseNAPIComm(comm); ok && id < 0 {
			t.Errorf("NAPI id %d", id)
		}
		if m, ok := parseMark(alias); ok {
			if again, ok := parseMark(m.String()); !ok || again != m {
				t.Errorf("%q read as %+v, written and read again %+v", alias, m, again)
			}
		}
		_, _ = parseStartTime(stat)
		_ = parseNAPI(msg)
	})
}

func TestStartTime(t *testing.T) {
	got, err := parseStartTime("7 (a b) c) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8910 0 0\n")
	if err != nil || got != 8910 {
		t.Errorf("%d, %v; want 8910", got, err)
	}
	for _, state := range []string{"Z", "X"} { // ended, and its parent has not looked yet
		_, err := parseStartTime("7 (a) " + state + " 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8910 0 0\n")
		if !errors.Is(err, os.ErrNotExist) {
			t.Errorf("state %s: %v, want that it does not exist", state, err)
		}
	}
	me, err := self()
	if err != nil || !me.alive() {
		t.Errorf("this process is not alive: %+v, %v", me, err)
	}
	if me.Start++; me.alive() {
		t.Error("a process of the same pid and another start time counts as alive")
	}
}
