package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
)

// labActions are the words that may follow `linerate lab`.
func labActions() []string { return []string{"up", "down", "exec", "list"} }

func labCommand() command {
	return command{
		name: "lab", job: "throw-away labs by hand: up, down, exec, list", synopsis: "lab up|down|exec|list [NAME]",
		about: `Throw-away labs by hand: two namespaces joined by a veth pair.`,
		examples: []example{
			{"linerate lab up x --queues 2", "makes lr-x-a/lr0 and lr-x-b/lr0"},
			{"linerate lab exec lr-x-a ip -s link", "runs a command on the first host"},
			{"linerate lab list --clean", "lists labs, after removing those whose maker died"},
			{"linerate lab down x", ""},
		},
		words: labActions(),
		flags: func() *pflag.FlagSet { fs, _ := labFlags(); return fs },
		run:   runLab,
	}
}

// labValues are the flags of `linerate lab`.
type labValues struct {
	queues, mtu int
	clean, json bool
}

func labFlags() (*pflag.FlagSet, *labValues) {
	f := &labValues{}
	fs := newFlags("lab")
	fs.IntVar(&f.queues, "queues", 1, "queues of each end")
	fs.IntVar(&f.mtu, "mtu", 1500, "MTU of each end")
	fs.BoolVar(&f.clean, "clean", false, "list: remove labs whose maker is gone")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	return fs, f
}

func runLab(_ context.Context, stdout, _ io.Writer, args []string) error {
	flags, f := labFlags()
	flags.SetInterspersed(len(args) == 0 || args[0] != "exec")
	if err := parse(stdout, flags, args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "up":
		if flags.NArg() > 2 {
			return &usageError{"lab up takes one name", "linerate lab up x"}
		}
		lab, err := labUp(flags.Arg(1), f.queues, f.mtu)
		if err != nil {
			return err
		}
		defer lab.Close()
		if f.json {
			return json.NewEncoder(stdout).Encode(map[string]string{"a": lab.A(), "b": lab.B()})
		}
		fmt.Fprintf(stdout, "%s\n%s\n\nnow:    linerate run --tx %s --rx %s\nlater:  linerate lab down %s\n",
			lab.A(), lab.B(), lab.A(), lab.B(), lab.Name())
		return nil
	case "down":
		if flags.NArg() != 2 {
			return &usageError{"lab down needs a name", "linerate lab list"}
		}
		return labDown(flags.Arg(1))
	case "exec":
		return labExec(slices.DeleteFunc(flags.Args()[1:], func(s string) bool { return s == "--" }))
	case "list":
		return labList(stdout, f.clean, f.json)
	}
	return &usageError{fmt.Sprintf("lab %q: want up, down, exec or list", flags.Arg(0)), "linerate help lab"}
}

// labUp builds a lab that stays. What is wrong with the request is a usage
// error, and so is a name that is taken.
func labUp(name string, queues, mtu int) (*veth.Lab, error) {
	if queues < 1 {
		return nil, &usageError{fmt.Sprintf("--queues %d: want at least 1", queues), "--queues 1"}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
		return nil, &usageError{fmt.Sprintf("%q cannot name a lab", name), "a word of letters and digits"}
	}
	lab, err := veth.Up(veth.Config{Name: labName(name), Queues: queues, MTU: mtu, Keep: true})
	var wrong *veth.ConfigError
	switch {
	case errors.As(err, &wrong):
		return nil, &usageError{err.Error(), "linerate help lab"}
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("there is a lab %s already\n  try: another name, or linerate lab down %s", labName(name), name)
	}
	return lab, err
}

// labDown removes a lab by name.
func labDown(name string) error {
	err := veth.Down(labName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no lab %s\n  try: linerate lab list", labName(name))
	}
	return err
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
		return "kept until linerate lab down " + l.Name
	case l.Alive:
		return fmt.Sprintf("used by process %d", l.PID)
	}
	return "left over: linerate lab list --clean removes it"
}
