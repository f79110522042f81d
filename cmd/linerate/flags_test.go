package main

import (
	"testing"

	"github.com/spf13/pflag"
)

// A run is bounded: by time, by count, or, for a sink, by the END frames.
func TestRunsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		tx   bool
		ok   bool
	}{
		"default":            {nil, true, true},
		"no time, no count":  {[]string{"-t", "0"}, true, false},
		"no time, a count":   {[]string{"-t", "0", "-n", "5"}, true, true},
		"a sink without end": {[]string{"-t", "0"}, false, true},
		"all is warm-up":     {[]string{"-t", "1s", "--warmup", "1s"}, true, false},
		"some is warm-up":    {[]string{"-t", "1s", "--warmup", "999ms"}, true, true},
	} {
		var f trialFlags
		fs := pflag.NewFlagSet("run", pflag.ContinueOnError)
		f.register(fs, sides{tx: true, rx: true})
		if err := fs.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if err := f.checkRanges(c.tx); (err == nil) != c.ok || err != nil && !isUsage(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
