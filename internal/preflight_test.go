package internal_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine is a made-up computer for scripts/preflight.sh: what its commands answer, what its /proc holds.
type machine struct {
	goVersion, kernel, release, uid string
	sudo                            bool
	files                           map[string]string
}

// goodMachine has all that a run needs.
func goodMachine() machine {
	return machine{
		goVersion: "go1.26.0", kernel: "Linux", release: "6.1.0-30-amd64", uid: "0",
		files: map[string]string{
			"proc/self/status":                          "Name:\tsh\nCapEff:\t000001ffffffffff\n",
			"proc/self/ns/net":                          "",
			"proc/net/protocols":                        "protocol  size\nXDP       1088\n",
			"proc/sys/kernel/unprivileged_bpf_disabled": "2\n",
			"proc/kallsyms":                             "0000000000000000 t veth_xmit\n",
			"modules/6.1.0-30-amd64/modules.builtin":    "",
			"modules/6.1.0-30-amd64/modules.dep":        "",
		},
	}
}

// lay builds the machine in dir; the commands it has are in dir/bin.
func (m machine) lay(t *testing.T, dir string) {
	t.Helper()
	commands := map[string]string{"uname": "if [ \"$1\" = -r ]; then echo '" + m.release + "'; else echo " + m.kernel + "; fi"}
	commands["id"] = "echo " + m.uid
	if m.goVersion != "" {
		commands["go"] = "echo " + m.goVersion
	}
	if m.sudo {
		commands["sudo"] = "exit 1"
	}
	files := maps.Clone(m.files)
	for name, body := range commands {
		files["bin/"+name] = "#!/bin/sh\n" + body + "\n"
	}
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tool := range []string{"sed", "grep"} {
		real, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(dir, "bin", tool)); err != nil {
			t.Fatal(err)
		}
	}
}

// preflight runs the checks on the machine and gives what they say, and whether they let it pass.
func (m machine) preflight(t *testing.T) (said string, passed bool) {
	t.Helper()
	dir := t.TempDir()
	m.lay(t, dir)
	cmd := exec.Command("/bin/sh", "../scripts/preflight.sh", "go", "root", "kernel")
	cmd.Env = []string{
		"PATH=" + filepath.Join(dir, "bin"), "PREFLIGHT_PROC=" + filepath.Join(dir, "proc"),
		"PREFLIGHT_MODULES=" + filepath.Join(dir, "modules"), "PREFLIGHT_AGAIN=make demo",
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err == nil
}

func TestPreflight(t *testing.T) {
	const dep = "modules/6.1.0-30-amd64/modules.dep"
	for _, c := range []struct {
		name   string
		change func(*machine)
		want   string // start of the one line it says, after "missing: "
	}{
		{"all there", func(*machine) {}, ""},
		{"newer Go", func(m *machine) { m.goVersion = "go1.30.1" }, ""},
		{"next major kernel", func(m *machine) { m.release = "7.0.0" }, ""},
		{"user with sudo", func(m *machine) { m.uid, m.sudo = "1000", true; m.files["proc/self/status"] = "CapEff:\t0\n" }, ""},
		{"veth as a module", func(m *machine) {
			m.files["proc/kallsyms"], m.files[dep] = "", "kernel/drivers/net/veth.ko.xz:\n"
		}, ""},
		{"no Go", func(m *machine) { m.goVersion = "" }, "Go 1.26 or later (no go command). Get it at"},
		{"old Go", func(m *machine) { m.goVersion = "go1.19.8" }, "Go 1.26 or later (this is 1.19.8). Get it at"},
		{"Go that cannot say", func(m *machine) { m.goVersion = "devel" }, "Go 1.26 or later (the go command here answers 'devel')"},
		{"user without sudo", func(m *machine) { m.uid = "1000" }, "root (and there is no sudo). Type: su -c 'make demo'"},
		{"root without capabilities", func(m *machine) {
			m.files["proc/self/status"] = "CapEff:\t00000000a80425fb\n"
		}, "the capabilities CAP_NET_ADMIN CAP_SYS_ADMIN CAP_BPF (root without them: a container?)."},
		{"not Linux", func(m *machine) { m.kernel = "Darwin" }, "Linux (this is Darwin)."},
		{"old kernel", func(m *machine) { m.release = "5.10.0-8-amd64" }, "Linux 6.1 or later (this is 5.10.0-8-amd64)."},
		{"older by one", func(m *machine) { m.release = "6.0.12" }, "Linux 6.1 or later (this is 6.0.12)."},
		{"no AF_XDP", func(m *machine) { m.files["proc/net/protocols"] = "protocol  size\n" }, "AF_XDP in this kernel"},
		{"no BPF", func(m *machine) { delete(m.files, "proc/sys/kernel/unprivileged_bpf_disabled") }, "BPF in this kernel"},
		{"no namespaces", func(m *machine) { delete(m.files, "proc/self/ns/net") }, "network namespaces in this kernel"},
		{"no veth", func(m *machine) { m.files["proc/kallsyms"] = "" }, "the veth driver (CONFIG_VETH). Type: sudo modprobe veth && make demo"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			m := goodMachine()
			c.change(&m)
			said, passed := m.preflight(t)
			if passed != (c.want == "") {
				t.Errorf("passed is %v: %s", passed, said)
			}
			if err := oneLine(said, c.want); err != nil {
				t.Error(err)
			}
		})
	}
}

// oneLine checks that said is exactly one line that starts with "missing: " and want; or nothing, if want is "".
func oneLine(said, want string) error {
	switch {
	case want == "" && said == "":
		return nil
	case want == "" || !strings.HasPrefix(said, "missing: "+want) || strings.Count(said, "\n") != 1:
		return fmt.Errorf("said %q, want one line with %q", said, want)
	}
	return nil
}
