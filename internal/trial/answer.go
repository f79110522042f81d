package trial

import (
	"errors"
	"fmt"

	"linerate/internal/budget"
	"linerate/internal/neighbor"
)

// answering is who answers at one end for the addresses of the stream.
type answering struct {
	end *End
	*neighbor.Responder
}

// openAnswers starts to answer at the ends that have addresses to answer for,
// and announces them. From then on a router can resolve them.
func (r *running) openAnswers() error {
	for _, e := range r.ends() {
		if len(e.Answers) == 0 {
			continue
		}
		mac := e.Port.MAC
		if e == r.spec.Tx {
			mac = r.spec.Stream.Stack.SrcMAC
		}
		a, err := neighbor.Open(neighbor.Config{Name: e.Endpoint, IfIndex: e.Port.Index, Do: e.Port.NS.Do, MAC: mac, Ranges: e.Answers, Every: r.spec.AnnounceEvery})
		if err != nil {
			return err
		}
		r.answers = append(r.answers, answering{e, a})
		a.Announce()
	}
	return nil
}

func (r *running) closeAnswers() error {
	var errs []error
	for _, a := range r.answers {
		errs = append(errs, a.Close())
	}
	return errors.Join(errs...)
}

// answered is what the sender's port has sent in answers and announcements.
func (r *running) answered() (n uint64) {
	for _, a := range r.answers {
		if a.end == r.spec.Tx {
			n = a.Counts().Sent()
		}
	}
	return n
}

// answerRow is what answering added to the frames on the sender's port, or, as
// a loss, what of it ended at a device under test.
func (r *running) answerRow(b *builder, at budget.Boundary, kind budget.Kind) {
	for _, a := range r.answers {
		if a.end == r.spec.Tx {
			n := since(r.last.answered, r.base.answered)
			b.port(at, kind, budget.RowNeighborTx, n, "neighbor", "answers, announcements", "outside the offered load")
		}
	}
}

// remarkAnswers says what was answered, before the trial too.
func (r *running) remarkAnswers() {
	for _, a := range r.answers {
		c := a.Counts()
		r.out.warn("answered", a.end.Endpoint, c.ARP, c.Solicitation, c.Echo, c.Announced)
		if c.Failed > 0 {
			r.out.warn("answers_failed", fmt.Sprintf("%d frames", c.Failed), a.end.Endpoint)
		}
	}
}
