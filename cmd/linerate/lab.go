package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

const labExample = `Throw-away labs by hand: two namespaces joined by a veth pair.
  linerate lab up x --queues 2      makes lr-x-a/lr0 and lr-x-b/lr0
  linerate lab exec lr-x-a CMD...   runs a command on the first host
  linerate lab list [--clean]       lists labs; --clean removes those whose maker died
  linerate lab down x
`

func runLab(_ context.Context, stdout, _ io.Writer, args []string) error {
	fs := newFlags(stdout, "lab up|down|exec|list", labExample)
	queues := fs.Int("queues", 1, "queues of each end")
	mtu := fs.Int("mtu", 1500, "MTU of each end")
	clean := fs.Bool("clean", false, "list: remove labs whose maker is gone")
	asJSON := fs.Bool("json", false, "print JSON")
	fs.SetInterspersed(len(args) == 0 || args[0] != "exec")
	if err := parse(fs, args); err != nil {
		return err
	}
	switch fs.Arg(0) {
	case "up":
		if fs.NArg() > 2 {
			return &usageError{"lab up takes one name", "linerate lab up x"}
		}
		lab, err := veth.Up(veth.Config{Name: labName(fs.Arg(1)), Queues: *queues, MTU: *mtu, Keep: true})
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(stdout).Encode(map[string]string{"a": lab.A(), "b": lab.B()})
		}
		fmt.Fprintf(stdout, "%s\n%s\n", lab.A(), lab.B())
		return nil
	case "down":
		if fs.NArg() != 2 {
			return &usageError{"lab down needs a name", "linerate lab list"}
		}
		return veth.Down(labName(fs.Arg(1)))
	case "exec":
		return labExec(fs.Args()[1:])
	case "list":
		return labList(stdout, *clean, *asJSON)
	}
	return &usageError{fmt.Sprintf("lab %q: want up, down, exec or list", fs.Arg(0)), "linerate help lab"}
}

// labName adds the prefix that marks our labs, once.
func labName(s string) string {
	if s == "" || strings.HasPrefix(s, veth.Prefix) {
		return s
	}
	return veth.Prefix + s
}

func labList(w io.Writer, clean, asJSON bool) error {
	if clean {
		removed, err := veth.Clean()
		if err != nil {
			return err
		}
		if !asJSON {
			for _, name := range removed {
				fmt.Fprintf(w, "removed %s\n", name)
			}
		}
	}
	labs, err := veth.List()
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(w).Encode(labs)
	}
	for _, l := range labs {
		fmt.Fprintf(w, "%-24s %s\n", l.Name, labState(l))
	}
	return nil
}

// labExec becomes the command inside the lab's namespace.
func labExec(args []string) error {
	if len(args) < 2 {
		return &usageError{"lab exec needs a namespace and a command", "linerate lab exec lr-x-a ip addr"}
	}
	path, err := lookPath(args[1])
	if err != nil {
		return err
	}
	ns, err := netns.Open(args[0])
	if err != nil {
		return err
	}
	defer ns.Close()
	// The thread that execs takes its namespaces with it.
	return ns.Do(func() error {
		return fmt.Errorf("run %s: %w", path, syscall.Exec(path, args[1:], os.Environ()))
	})
}

// lookPath finds a command as a shell would. (os/exec is kept out of here: the
// program starts no children.)
func lookPath(name string) (string, error) {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if strings.Contains(name, "/") {
		dirs = []string{""}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", &usageError{fmt.Sprintf("no command %q to run", name), "linerate lab exec lr-x-a ip addr"}
}

// labState says in a word who stands behind a lab.
func labState(l veth.Info) string {
	switch {
	case !l.Complete:
		return "half made"
	case l.Keep:
		return "kept"
	case l.Alive:
		return fmt.Sprintf("used by process %d", l.PID)
	}
	return "left over: linerate lab list --clean removes it"
}
