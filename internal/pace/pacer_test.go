package pace

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	second = int64(time.Second)
	start  = int64(1_000_000_007) // not a round number
)

// rates of the acceptance list, in frames per second.
var rates = []float64{1, 1e3, 1e5, 5e5, 14.88e6, 1e10 / 672}

// call is one call of Due and what came of it.
type call struct {
	at, intended int64
	n            int
	caughtUp     bool // the window rule was suspended
}

// drive calls Due until Done or the given time, at the times wake makes of
// Next, and returns the calls that granted something.
func drive(p *Pacer, until int64, most int, wake func(now, next int64) int64) []call {
	var calls []call
	p.Start(start)
	for now := start; !p.Done() && now < until; now = wake(now, p.Next()) {
		if n, intended := p.Due(now, most); n > 0 {
			calls = append(calls, call{now, intended, n, now < p.CatchUpUntil()})
		}
	}
	return calls
}

// prompt is the wake of a worker that is always there.
func prompt(now, next int64) int64 { return max(now+1, next) }

// jittery wakes up to 100 us late, every time.
func jittery(rng *rand.Rand) func(now, next int64) int64 {
	return func(now, next int64) int64 {
		return max(now+1, next) + rng.Int64N(int64(100*time.Microsecond))
	}
}

func TestRateErrorIsZero(t *testing.T) {
	for _, rate := range rates {
		for name, wake := range map[string]func(now, next int64) int64{
			"prompt":  prompt,
			"jittery": jittery(rand.New(rand.NewPCG(1, uint64(rate)))),
		} {
			t.Run(fmt.Sprintf("%s/%.0f", name, rate), func(t *testing.T) {
				duration := 10 * time.Second
				if rate > 1e6 && name == "prompt" {
					duration /= 100 // 1.5 million single permits: the other 148 are like them
				}
				p := New(Config{PPS: rate, Workers: 1, Duration: duration})
				calls := drive(p, math.MaxInt64, 1<<20, wake)
				want := uint64(math.Ceil(rate*duration.Seconds() - 1e-6))
				if p.Granted() != want || p.Thrown() != 0 {
					t.Errorf("granted %d, thrown %d; want %d and 0", p.Granted(), p.Thrown(), want)
				}
				end := calls[len(calls)-1].at
				if late := end - start - int64(duration); late > int64(DefaultMaxDebt) {
					t.Errorf("the last frame left %d ns after the end", late)
				}
				if !p.Done() || p.Next() != math.MaxInt64 {
					t.Errorf("done %v, next %d after the end", p.Done(), p.Next())
				}
			})
		}
	}
}

// The time of permit k must be that of exact arithmetic, after a day as well.
func TestScheduleIsExact(t *testing.T) {
	for _, rate := range rates {
		p := New(Config{PPS: rate, Workers: 1})
		p.Start(start)
		for _, seconds := range []float64{0.001, 1, 10, 86400} {
			k := int64(rate * seconds)
			exact := new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(k), big.NewInt(second)))
			exact.Quo(exact, new(big.Rat).SetFloat64(rate))
			want, _ := exact.Float64()
			if diff := float64(p.at(k)-start) - want; math.Abs(diff) > 1.1 {
				t.Errorf("rate %v: permit %d is %v ns off", rate, k, diff)
			}
			if got, next := p.reached(p.at(k)); got != k+1 || next != p.at(k+1) {
				t.Errorf("rate %v: reached %d and %d at the time of permit %d", rate, got, next, k)
			}
			if got, next := p.reached(p.at(k) - 1); got != k || next != p.at(k) {
				t.Errorf("rate %v: reached %d and %d before the time of permit %d", rate, got, next, k)
			}
		}
	}
}

// A duration that ends just where a permit is due does not contain it, however
// the arithmetic rounds.
func TestDurationExcludesItsEnd(t *testing.T) {
	for permits := int64(1); permits < 5000; permits++ {
		c := Config{PPS: 1e9 / 7.0, Workers: 1, Duration: time.Duration(7 * permits)}
		if got := New(c).end; got != permits {
			t.Errorf("%v at 7 ns hold %d permits, want %d", c.Duration, got, permits)
		}
	}
}

func TestWorkersInterleaveIntoOneStream(t *testing.T) {
	const workers, count = 5, 1003
	for _, rate := range rates {
		whole := New(Config{PPS: rate, Workers: 1, Count: count})
		whole.Start(start)
		got := make([]int64, 0, count)
		for w := range workers {
			p := New(Config{PPS: rate, Count: count, Worker: w, Workers: workers})
			for _, c := range drive(p, math.MaxInt64, 1, prompt) {
				if c.at != c.intended || c.n != 1 {
					t.Fatalf("rate %v: %d permits at %d for %d", rate, c.n, c.at, c.intended)
				}
				got = append(got, c.at)
			}
		}
		if len(got) != count {
			t.Fatalf("rate %v: %d permits, want %d", rate, len(got), count)
		}
		at := map[int64]int{}
		for _, g := range got {
			at[g]++
		}
		for k := range int64(count) {
			if want := whole.at(k); at[want] != 1 {
				t.Fatalf("rate %v: %d permits at %d, the time of number %d", rate, at[want], want-start, k)
			}
		}
	}
}

func TestStallOfFiveMilliseconds(t *testing.T) {
	const rate = 1e5
	p := New(Config{PPS: rate, Workers: 1, Duration: time.Second})
	away := false
	calls := drive(p, math.MaxInt64, 1<<20, func(now, next int64) int64 {
		if !away && now > start+second/2 {
			away = true
			return next + int64(5*time.Millisecond)
		}
		return prompt(now, next)
	})
	// 501 permits were due in 5 ms, the first and last included; 1 ms is 100.
	if p.Thrown() != 401 || p.Offered() != rate || p.Granted() != rate-401 {
		t.Errorf("offered %d, granted %d, thrown %d; want 401 thrown", p.Offered(), p.Granted(), p.Thrown())
	}
	if s := p.Stalls(); s.Count != 1 || s.Sum != 5*time.Millisecond || s.Longest != s.Sum {
		t.Errorf("stalls %+v, want one of 5 ms", s)
	}
	if p.CatchUps() != 1 {
		t.Errorf("%d catch-ups, want 1", p.CatchUps())
	}
	caught := 0
	for _, c := range calls {
		if c.caughtUp {
			caught += c.n
		}
	}
	if caught != 199 && caught != 200 { // 1 ms of debt, and 1 ms of its own time
		t.Errorf("%d permits while catching up, want 200", caught)
	}
}

// A delay too short to be a stall is made good, but without a burst.
func TestShortDelayIsMadeGoodWithoutBurst(t *testing.T) {
	const rate = 1e6
	p := New(Config{PPS: rate, Workers: 1, Duration: 100 * time.Millisecond})
	away := false
	calls := drive(p, math.MaxInt64, 1<<20, func(now, next int64) int64 {
		if !away && now > start+second/1000 {
			away = true
			return next + int64(150*time.Microsecond)
		}
		return prompt(now, next)
	})
	if p.Granted() != rate/10 || p.Thrown() != 0 || p.CatchUps() != 0 || p.Stalls().Count != 0 {
		t.Errorf("granted %d, thrown %d, %d catch-ups, %+v; want all granted and no stall",
			p.Granted(), p.Thrown(), p.CatchUps(), p.Stalls())
	}
	if most := mostInWindow(calls); most != rate/1e4+2 {
		t.Errorf("%d permits in 100 us; want the rate's 100 and 2", most)
	}
	last := calls[len(calls)-1]
	if last.at != last.intended {
		t.Errorf("still %d ns late at the end", last.at-last.intended)
	}
}

// mostInWindow returns the most permits any 100 us hold that no catch-up touches.
func mostInWindow(calls []call) int {
	most, sum, tail := 0, 0, 0
	for i, c := range calls {
		sum += c.n
		for calls[tail].at <= c.at-int64(Window) {
			sum -= calls[tail].n
			tail++
		}
		clean := true
		for _, o := range calls[tail : i+1] {
			clean = clean && !o.caughtUp
		}
		if clean {
			most = max(most, sum)
		}
	}
	return most
}

func TestDueIncludesNow(t *testing.T) {
	p := New(Config{PPS: 1e6, Workers: 1})
	p.Start(start)
	if n, intended := p.Due(start+1000, 64); n != 2 || intended != start {
		t.Errorf("Due = %d, %d; want permits 0 and 1", n, intended)
	}
	if n, next := p.Due(start+1999, 64); n != 0 || next != start+2000 {
		t.Errorf("Due = %d, %d; want none before permit 2", n, next)
	}
}

// Frames that leave in batches of 30 need a burst of that size, and then lose
// nothing.
func TestSteadyBatches(t *testing.T) {
	p := New(Config{PPS: 1e6, Workers: 1, Burst: 32, Duration: time.Second})
	drive(p, math.MaxInt64, 64, func(now, next int64) int64 {
		return now + int64(30*time.Microsecond)
	})
	if p.Granted() != 1e6 || p.Thrown() != 0 || p.CatchUps() != 0 {
		t.Errorf("granted %d, thrown %d, %d catch-ups", p.Granted(), p.Thrown(), p.CatchUps())
	}
}

// A worker with no room asks for nothing; what that costs is thrown, and not
// called a stall.
func TestNoRoom(t *testing.T) {
	p := New(Config{PPS: 1e5, Workers: 1, Duration: 20 * time.Millisecond})
	p.Start(start)
	for now := start; now < start+int64(50*time.Millisecond); now += 1000 {
		if n, _ := p.Due(now, 0); n != 0 {
			t.Fatalf("%d permits for no room", n)
		}
		if n, _ := p.Due(now, -5); n != 0 {
			t.Fatalf("%d permits for less than no room", n)
		}
	}
	if p.Thrown() != 2000 || p.Granted() != 0 || p.Stalls().Count != 0 || !p.Done() {
		t.Errorf("thrown %d, granted %d, %+v, done %v", p.Thrown(), p.Granted(), p.Stalls(), p.Done())
	}
}

// At 1 frame per second one that is 5 ms late is no burst, and is sent.
func TestLateFrameAtLowRateIsSent(t *testing.T) {
	p := New(Config{PPS: 1, Workers: 1, Count: 3})
	calls := drive(p, math.MaxInt64, 8, func(now, next int64) int64 { return next + 5_000_000 })
	if p.Granted() != 3 || p.Thrown() != 0 || p.Stalls().Count != 2 {
		t.Errorf("granted %d, thrown %d, %+v", p.Granted(), p.Thrown(), p.Stalls())
	}
	if c := calls[2]; c.at-c.intended != 5_000_000 || c.intended != start+2*second {
		t.Errorf("third frame at %d for %d", c.at, c.intended)
	}
}

func TestUnlimited(t *testing.T) {
	p := New(Config{Workers: 2, Worker: 1, Count: 101, Duration: time.Second})
	p.Start(start)
	if n, _ := p.Due(start-1, 64); n != 0 {
		t.Errorf("%d permits before the start", n)
	}
	if n, at := p.Due(start+5, 32); n != 32 || at != start+5 {
		t.Errorf("Due = %d, %d; want all that was asked, for now", n, at)
	}
	if n, _ := p.Due(start+6, 32); n != 18 || !p.Done() {
		t.Errorf("Due = %d, done %v; want the 18 that are left of 50", n, p.Done())
	}
	p = New(Config{Workers: 1, Duration: time.Second})
	p.Start(start)
	if n, _ := p.Due(start+second-1, 7); n != 7 || p.Stalls().Count != 1 {
		t.Errorf("Due = %d, %+v; want 7 and the stall seen", n, p.Stalls())
	}
	if n, _ := p.Due(start+second, 7); n != 0 || !p.Done() {
		t.Errorf("Due = %d, done %v behind the duration", n, p.Done())
	}
}

func TestNothingBeforeStart(t *testing.T) {
	p := New(Config{PPS: 1e6, Workers: 1})
	if n, _ := p.Due(start, 64); n != 0 || p.Next() != math.MaxInt64 || p.Done() {
		t.Errorf("before Start: %d permits, next %d, done %v", n, p.Next(), p.Done())
	}
}

func TestConfigOutOfRange(t *testing.T) {
	for name, c := range map[string]Config{
		"no workers":   {PPS: 1},
		"worker":       {PPS: 1, Worker: 2, Workers: 2},
		"negative":     {PPS: 1, Worker: -1, Workers: 2},
		"crowd":        {PPS: 1, Workers: 1 << 20},
		"NaN":          {PPS: math.NaN(), Workers: 1},
		"endless":      {PPS: math.Inf(1), Workers: 1},
		"below zero":   {PPS: -1, Workers: 1},
		"almost never": {PPS: 1e-9, Workers: 1},
		"burst":        {PPS: 1, Workers: 1, Burst: -1},
		"debt":         {PPS: 1, Workers: 1, MaxDebt: -1},
		"duration":     {PPS: 1, Workers: 1, Duration: -1},
	} {
		var config *ConfigError
		if err := c.Validate(); !errors.As(err, &config) || config.Error() == "" {
			t.Errorf("%s: error %v, want a *ConfigError", name, err)
		}
		p := New(c)
		p.Start(start)
		if n, _ := p.Due(math.MaxInt64, 64); n != 0 || !p.Done() {
			t.Errorf("%s: %d permits, done %v", name, n, p.Done())
		}
	}
}

func TestNoteStall(t *testing.T) {
	p := New(Config{PPS: 1, Workers: 1})
	p.NoteStall(0, int64(StallAfter))
	if p.Stalls().Count != 0 {
		t.Error("a gap of just 200 us is a stall")
	}
	p.NoteStall(0, second)
	p.NoteStall(0, int64(StallAfter)+1)
	if s := p.Stalls(); s.Count != 2 || s.Longest != time.Second || s.Sum != time.Second+StallAfter+1 {
		t.Errorf("stalls %+v", s)
	}
}

func TestDueDoesNotAllocate(t *testing.T) {
	for name, c := range map[string]Config{
		"paced":     {PPS: 14.88e6, Workers: 1},
		"batches":   {PPS: 14.88e6, Workers: 1, Burst: 64},
		"slow":      {PPS: 1e3, Workers: 1},
		"unlimited": {Workers: 1},
	} {
		p := New(c)
		p.Start(0)
		now := int64(0)
		if a := testing.AllocsPerRun(10000, func() { now += 1000; p.Due(now, 64) }); a != 0 {
			t.Errorf("%s: %v allocations per call", name, a)
		}
	}
}

func BenchmarkDue(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  Config
		step int64
	}{
		{"early", Config{PPS: 1, Workers: 1}, 0},
		{"batch64", Config{PPS: 14.88e6, Workers: 1, Burst: 64}, 4301},
		{"single1M", Config{PPS: 1e6, Workers: 1}, 1000},
		{"unlimited", Config{Workers: 1}, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := New(c.cfg)
			p.Start(0)
			p.Due(0, 64)
			now := int64(1)
			for b.Loop() {
				p.Due(now, 64)
				now += c.step
			}
		})
	}
}
