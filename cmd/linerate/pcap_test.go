package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/pcap"
)

// packet is a UDP frame of n bytes of one flow; fill makes its payload its own.
func packet(n, flow, number int) []byte {
	b := bytes.Repeat([]byte{byte(number)}, n)
	copy(b, "\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x00")
	clear(b[16:26])
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	b[22], b[23] = 64, 17
	copy(b[26:], []byte{198, 18, 0, 1, 198, 18, 0, byte(2 + flow)})
	binary.BigEndian.PutUint16(b[34:], uint16(1000+flow))
	binary.BigEndian.PutUint16(b[36:], 7777)
	binary.BigEndian.PutUint16(b[38:], uint16(n-34))
	binary.BigEndian.PutUint32(b[n-4:], uint32(number))
	return b
}

// saveCapture writes frames 10 us apart, as pcapng.
func saveCapture(t *testing.T, frames [][]byte) string {
	t.Helper()
	var b bytes.Buffer
	w, err := pcap.NewWriter(&b, "test", "lr0")
	for i, f := range frames {
		if err == nil {
			err = w.Write(1_700_000_000_000_000_000+int64(i)*10_000, f, len(f), "")
		}
	}
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return saveFile(t, b.Bytes())
}

func saveFile(t *testing.T, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// byFlow reads a capture: its frames by their flow.
func byFlow(t *testing.T, path string) (flows map[string][][]byte, n int) {
	t.Helper()
	r, err := pcap.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	flows = map[string][][]byte{}
	for {
		p, err := r.Next()
		if err == io.EOF {
			return flows, n
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
		key := string(p.Data[26:38])
		flows[key] = append(flows[key], bytes.Clone(p.Data))
	}
}

// sameFrames holds what was captured against what was sent so many times.
func sameFrames(t *testing.T, sent, got string, loops int) {
	t.Helper()
	want, n := byFlow(t, sent)
	have, m := byFlow(t, got)
	if m != n*loops || len(have) != len(want) {
		t.Fatalf("%d frames of %d flows, want %d of %d", m, len(have), n*loops, len(want))
	}
	for key, frames := range want {
		for i, b := range have[key] {
			if !bytes.Equal(b, frames[i%len(frames)]) {
				t.Fatalf("frame %d of flow %x differs:\n%x\n%x", i, key, b, frames[i%len(frames)])
			}
		}
	}
}

// mixed is frames of many lengths in several flows.
func mixed(n int) (frames [][]byte) {
	for i := range n {
		frames = append(frames, packet(60+(i*37)%1455, i%13, i))
	}
	return frames
}

// TestReplayIsCapturedWhole: what is sent comes out of the file that the sink
// writes byte for byte, in order within each flow, over real sockets.
func TestReplayIsCapturedWhole(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	const n = 500
	in := saveCapture(t, mixed(n))
	for _, c := range []struct {
		flags string
		loops int
	}{
		{"--tx-queues 0", 1},
		{"--tx-queues 0,1 --rate 20kpps --loops 3", 3},
		{"--tx-queues 0,1 --pcap-stream --pcap-speed 0.5x --loops 2", 2},
		{"--tx-queues 0 --pcap-stream --rate 20kpps", 1},
	} {
		t.Run(c.flags, func(t *testing.T) {
			lab := nettest.Lab(t, veth.Config{Queues: 2})
			out := filepath.Join(t.TempDir(), "out.pcapng")
			args := "run --tx " + lab.A() + " --rx " + lab.B() + " --pcap " + in + " --action capture --capture first:5000 --max-rate-error 100 --write " + out + " --json " + c.flags
			code, stdout, stderr := invoke(t, strings.Fields(args)...)
			if code != exitPassed {
				t.Fatalf("exit %d: %s%s", code, stdout, stderr)
			}
			sameFrames(t, in, out, c.loops)
			shows(map[string]any{"sent": n * c.loops, "unexplained": 0, "received": nil})(t, valid(t, "linerate.run/1", stdout)["frames"].(map[string]any))
		})
	}
}

// TestReplayJumbo: frames of several chunks too.
func TestReplayJumbo(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{MTU: 9000})
	in, out := saveCapture(t, [][]byte{packet(9014, 0, 1), packet(60, 0, 2), packet(4097, 0, 3)}), filepath.Join(t.TempDir(), "out.pcapng")
	code, stdout, stderr := invoke(t, "run", "--tx", lab.A(), "--rx", lab.B(), "--pcap", in, "--loops", "20",
		"--rate", "5kpps", "--max-rate-error", "100", "--action", "capture", "--write", out)
	if code != exitPassed {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	sameFrames(t, in, out, 20)
}

// TestBlastIntoCapturingSink: the same with a process for each end, and the
// last frames instead of the first.
func TestBlastIntoCapturingSink(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	in, out := saveCapture(t, mixed(100)), filepath.Join(t.TempDir(), "out.pcapng")
	done := make(chan int)
	go func() {
		code, _, _ := invoke(t, "sink", lab.B(), "--action", "capture", "--steer", "port:7777", "--capture", "last:100", "--write", out, "-t", "4s")
		done <- code
	}()
	time.Sleep(1500 * time.Millisecond)
	if code, stdout, stderr := invoke(t, "blast", lab.A(), "--pcap", in, "--loops", "7", "--rate", "5kpps", "--max-rate-error", "100"); code != exitPassed {
		t.Errorf("blast: exit %d: %s%s", code, stdout, stderr)
	}
	if code := <-done; code != exitPassed {
		t.Errorf("sink: exit %d", code)
	}
	sameFrames(t, in, out, 1)
}

// TestCaptureOfBadFrames: only those, each with its reason, for another
// program to read.
func TestCaptureOfBadFrames(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP, nettest.Tshark)
	box := nettest.FaultBox(t, nettest.BoxConfig{Rules: []nettest.Rule{
		{Fault: nettest.Duplicate, Frames: []uint64{100}},
		{Fault: nettest.Corrupt, Part: nettest.Payload, Frames: []uint64{200}},
	}})
	out := filepath.Join(t.TempDir(), "bad.pcapng")
	before := time.Now()
	code, stdout, stderr := invoke(t, "run", "--tx", box.A(), "--rx", box.B(), "-n", "1000", "--rate", "5kpps", "--frame", "128", "--settle", "500ms",
		"--action", "capture", "--capture", "bad:10", "--write", out)
	if code != exitFailed || !strings.Contains(stdout, "2 frames were kept (bad:10), 0 that") {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	r, err := pcap.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := r.Next()
	if at := time.Unix(0, p.Ns); err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("captured at %s: %v", at, err)
	}
	got, err := exec.Command("tshark", "-r", out, "-T", "fields", "-e", "frame.comment").Output()
	if err != nil || string(got) != "duplicate\ncorrupt: l4 checksum\n" {
		t.Errorf("tshark: %q, %v", got, err)
	}
}

// classicHeader is a pcap file without frames, of a link type.
func classicHeader(link uint32) []byte {
	b := []byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0}
	return binary.LittleEndian.AppendUint32(b, link)
}

// TestBadCaptures: what cannot be sent is said with file and offset before
// anything is, and what else goes wrong with the flags.
func TestBadCaptures(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	whole, err := os.ReadFile(saveCapture(t, mixed(3)))
	if err != nil {
		t.Fatal(err)
	}
	good := saveFile(t, whole)
	long := saveCapture(t, [][]byte{packet(60, 0, 0), packet(1515, 0, 1)})
	for _, c := range []struct {
		name, file string
		code       int
		says       string
	}{
		{"missing", "/no/such/file.pcap", exitCannotRun, "no such file"},
		{"empty", saveFile(t, nil), exitUsage, "at byte 0: the file is empty"},
		{"garbage", saveFile(t, []byte("this is no capture")), exitUsage, "at byte 0: neither"},
		{"truncated", saveFile(t, whole[:len(whole)-5]), exitUsage, "ends in the middle"},
		{"wrong link type", saveFile(t, classicHeader(113)), exitUsage, "link type 113"},
		{"no frame", saveFile(t, classicHeader(1)), exitUsage, "at byte 24: the capture holds no frame"},
		{"above the MTU", long, exitCannotRun, "needs an MTU of 1501"},
		{"speed", good + " --pcap-speed 2", exitUsage, "with its x"},
		{"speed and rate", good + " --pcap-speed 2x --rate max", exitUsage, "exclude each other"},
		{"count", good + " -n 5", exitUsage, "--count does not go with --pcap"},
		{"size", good + " --frame 64", exitUsage, "--frame does not go with --pcap"},
		{"engine", good + " --engine asavie", exitUsage, "cannot send a capture"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, stderr := invoke(t, strings.Fields("blast "+lab.A()+" --pcap "+c.file)...)
			path, _, _ := strings.Cut(c.file, " ")
			if code != c.code || !strings.Contains(stderr, c.says) {
				t.Errorf("exit %d, want %d and %q: %s", code, c.code, c.says, stderr)
			}
			if path != good && !strings.Contains(stderr, path) {
				t.Errorf("%q does not name the file", stderr)
			}
		})
	}
	for _, c := range []struct{ flags, says string }{
		{"--action capture", "needs a file"},
		{"--write x.pcapng", "keeps no frames"},
		{"--action capture --write /", "is a directory"},
		{"--action capture --write x.pcapng --capture some:3", "first:N"},
		{"--action capture --write x.pcapng --capture last:10000000", "MiB"},
		{"--action capture --write x.pcapng --engine asavie", "cannot capture"},
	} {
		t.Run(c.flags, func(t *testing.T) {
			code, _, stderr := invoke(t, strings.Fields("sink "+lab.B()+" "+c.flags)...)
			if code != exitUsage || !strings.Contains(stderr, c.says) {
				t.Errorf("exit %d: %s", code, stderr)
			}
		})
	}
	code, _, stderr := invoke(t, strings.Fields("run --tx "+lab.A()+" --rx "+lab.B()+" --action verify --pcap "+good)...)
	if code != exitUsage || !strings.Contains(stderr, "not verified") {
		t.Errorf("verify: exit %d: %s", code, stderr)
	}
}
