package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// parseQueues reads "0,1", "0-3" or "all" for a device with have queues.
func parseQueues(s string, have int) ([]int, error) {
	if s == "all" {
		ids := make([]int, have)
		for i := range ids {
			ids[i] = i
		}
		return ids, nil
	}
	ids, err := parseInts(s)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("--queues %s: %v", s, err), "--queues 0,1 or --queues 0-3 or --queues all"}
	}
	if len(ids) > 16 {
		return nil, &usageError{fmt.Sprintf("--queues %s: the tag has room for 16 workers", s), "--queues 0-15"}
	}
	return ids, nil
}

// parseInts reads a list of numbers and ranges, each number once.
func parseInts(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		a, err1 := strconv.ParseUint(lo, 10, 12)
		b, err2 := strconv.ParseUint(hi, 10, 12)
		if err1 != nil || err2 != nil || b < a {
			return nil, fmt.Errorf("%q is no number or range", part)
		}
		for i := a; i <= b; i++ {
			if slices.Contains(out, int(i)) {
				return nil, fmt.Errorf("%d stands twice", i)
			}
			out = append(out, int(i))
		}
	}
	return out, nil
}

// allowedCPUs are the CPUs this process may run on.
func allowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := 0; i < 1024 && len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// corePlan hands out CPUs: the sender's workers first, then the receiver's,
// each on its own as long as there are any.
type corePlan struct {
	free   []int
	next   int // of free
	shared int // of the list that both ends share
}

// take returns n CPUs of a list of the end's own, else of the list that both
// ends share; -1 leaves a worker to the scheduler.
func (p *corePlan) take(own, common string, n int) ([]int, error) {
	cores := either(own, common)
	cpus := make([]int, n)
	if cores == "auto" {
		for i := range cpus {
			cpus[i] = -1
			if len(p.free) > 0 {
				cpus[i] = p.free[p.next%len(p.free)]
				p.next++
			}
		}
		return cpus, nil
	}
	ids, err := parseInts(cores)
	if err != nil {
		return nil, &usageError{fmt.Sprintf("--cores %s: %v", cores, err), "--cores 0,1 or --cores auto"}
	}
	first := 0
	if own == "" {
		first = p.shared
		p.shared += n
	}
	for i := range cpus {
		cpus[i] = ids[(first+i)%len(ids)]
		if len(p.free) > 0 && !slices.Contains(p.free, cpus[i]) {
			return nil, &usageError{fmt.Sprintf("--cores %s: this process may not run on CPU %d", cores, cpus[i]), fmt.Sprintf("one of %v", p.free)}
		}
	}
	return cpus, nil
}
