package main

import (
	"slices"
	"testing"
)

// A list of cores goes to the sender's workers first, and then to the
// receiver's; a list of an end's own begins anew.
func TestCoresOfBothEnds(t *testing.T) {
	for name, c := range map[string]struct {
		common, tx, rx string
		txN, rxN       int
		txWant, rxWant []int
	}{
		"auto":              {"auto", "", "", 1, 1, []int{4}, []int{5}},
		"auto goes round":   {"auto", "", "", 2, 3, []int{4, 5}, []int{6, 7, 4}},
		"one list":          {"4,5", "", "", 1, 1, []int{4}, []int{5}},
		"one list of three": {"4,5,6", "", "", 2, 2, []int{4, 5}, []int{6, 4}},
		"two lists":         {"auto", "4,5", "4,5", 1, 1, []int{4}, []int{4}},
		"one of its own":    {"6,7", "5", "", 1, 2, []int{5}, []int{6, 7}},
	} {
		p := corePlan{free: []int{4, 5, 6, 7}}
		tx, err1 := p.take(c.tx, c.common, c.txN)
		rx, err2 := p.take(c.rx, c.common, c.rxN)
		if err1 != nil || err2 != nil || !slices.Equal(tx, c.txWant) || !slices.Equal(rx, c.rxWant) {
			t.Errorf("%s: tx %v rx %v (%v, %v), want %v %v", name, tx, rx, err1, err2, c.txWant, c.rxWant)
		}
	}
	p := corePlan{free: []int{4, 5}}
	for _, cores := range []string{"", "x", "4-", "9"} {
		if cpus, err := p.take("", cores, 1); !isUsage(err) {
			t.Errorf("--cores %q: %v, %v", cores, cpus, err)
		}
	}
	if cpus, err := (&corePlan{}).take("", "auto", 2); err != nil || !slices.Equal(cpus, []int{-1, -1}) {
		t.Errorf("no CPUs known: %v, %v", cpus, err)
	}
}
