package budget

import (
	"errors"
	"fmt"
	"slices"
)

// RowError is a row that the table of rows does not allow.
type RowError struct {
	Row  Row
	What string
}

// Error implements error.
func (e *RowError) Error() string {
	return fmt.Sprintf("row %s at %s: %s", e.Row.Row, e.Row.Boundary, e.What)
}

// Check reports every row that the table does not know, that stands where it
// may not, or that no checkpoint follows or precedes. The errors are *RowError,
// joined.
func Check(rows []Row) error {
	var errs []error
	for _, r := range rows {
		if what := r.misplaced(); what != "" {
			errs = append(errs, &RowError{r, what})
		}
	}
	for _, direction := range directions(rows) {
		errs = append(errs, loose(inOrder(rows, direction))...)
	}
	return errors.Join(errs...)
}

func (r Row) misplaced() string {
	d, known := Define(r.Row)
	if !known {
		return "not in the table of rows"
	}
	if r.Boundary.rank() < 0 {
		return "no such boundary"
	}
	if _, ok := d.allows(r.Boundary, r.Kind); !ok {
		return fmt.Sprintf("may not be a %s here", r.Kind)
	}
	return ""
}

// loose finds movements behind the last checkpoint: no sum would hold them.
// Those in front of the first belong to the end that is not in hand.
func loose(ordered []Row) []error {
	var errs []error
	for _, r := range slices.Backward(ordered) {
		if r.Kind == Checkpoint {
			break
		}
		errs = append(errs, &RowError{r, "no checkpoint follows"})
	}
	return errs
}
