package engine

import (
	"errors"
	"sync"
	"sync/atomic"
)

// together runs the n workers of one trial; an error of one stops the others.
func together(n int, stop *atomic.Bool, run func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if errs[i] = run(i); errs[i] != nil {
				stop.Store(true)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
