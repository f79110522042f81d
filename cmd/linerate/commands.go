package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/spf13/pflag"
)

// command is one subcommand: what runs it, and all there is to say of it, from
// which its help, its man page and its completion are made.
type command struct {
	name, job string
	synopsis  string // how to type it, without the program's name
	about     string
	examples  []example
	words     []string // what its first argument may be
	endpoint  bool     // its argument is an endpoint
	files     bool     // its argument is a file or a folder
	flags     func() *pflag.FlagSet
	run       func(ctx context.Context, stdout, stderr io.Writer, args []string) error
}

// example is a command line that works as it stands, and what is special.
type example struct{ line, note string }

// commands lists the subcommands in the order of the help text.
func commands() []command {
	return []command{
		demoCommand(), runCommand(), blastCommand(), sinkCommand(), ceilingCommand(), streamsCommand(), labCommand(),
		completionCommand(), manCommand(), helpCommand(), versionCommand(),
	}
}

// planned are the commands of the contract that this build does not have.
var planned = []string{"doctor", "tune", "tcp", "compare", "validate", "regress", "report", "capture-host"}

func commandNames() []string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// findCommand returns the command of that name.
func findCommand(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// newFlags makes the empty flag set of one command.
func newFlags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed once, by exitCode
	fs.SortFlags = false
	fs.Usage = func() {} // and help by parse
	return fs
}

// noFlags is the flag set of a command without any.
func noFlags(name string) func() *pflag.FlagSet {
	return func() *pflag.FlagSet { return newFlags(name) }
}

// parse reads the flags; what is wrong with them is a usage error.
func parse(stdout io.Writer, fs *pflag.FlagSet, args []string) error {
	err := fs.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		if c, ok := findCommand(fs.Name()); ok {
			if werr := c.help(stdout); werr != nil {
				return &unwrittenError{werr}
			}
		}
		return err
	case err != nil:
		return &usageError{err.Error(), "linerate help " + fs.Name()}
	}
	return nil
}

// Annotations of flags: what completion offers as their value.
const (
	valueChoices  = "linerate_choices"
	valueEndpoint = "linerate_endpoint"
	valueFile     = "linerate_file"
)

// choices says which values a flag takes, or the usual ones.
func choices(fs *pflag.FlagSet, name string, values ...string) {
	annotate(fs, name, valueChoices, values)
}

// endpoints says that the values of these flags are endpoints.
func endpoints(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		annotate(fs, name, valueEndpoint, nil)
	}
}

// files says that the value of a flag is a file.
func files(fs *pflag.FlagSet, name string) { annotate(fs, name, valueFile, nil) }

func annotate(fs *pflag.FlagSet, name, key string, values []string) {
	if err := fs.SetAnnotation(name, key, values); err != nil {
		panic(err) // a fault of the program, found by any test of the command
	}
}

// takesValue says whether a flag needs a value of its own behind it.
func takesValue(f *pflag.Flag) bool { return f.NoOptDefVal == "" }
