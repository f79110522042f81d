package pace

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawConfig draws a paced Config with rates over six decades.
func drawConfig(t *rapid.T) Config {
	workers := rapid.IntRange(1, 4).Draw(t, "workers")
	return Config{
		PPS:     math.Pow(10, rapid.Float64Range(0, 6.5).Draw(t, "log10 of rate")),
		Workers: workers,
		Worker:  rapid.IntRange(0, workers-1).Draw(t, "worker"),
		Burst:   rapid.SampledFrom([]int{0, 0, 1, 3, 64}).Draw(t, "burst"),
	}
}

// A worker with jitter, stalls and changing room: whatever happens to it, these
// hold.
func TestPacerProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		own := c.PPS / float64(c.Workers)
		c.Duration = min(time.Second, time.Duration(2000/own*1e9))
		p := New(c)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rooms := []int{0, 1, 7, 64, 1 << 20}
		lates := []int64{1, 1, 1000, 100_000, 300_000, 5_000_000}[:rapid.IntRange(1, 6).Draw(t, "trouble")]
		var calls []call
		p.Start(start)
		for now := start; !p.Done(); {
			most := rooms[rng.IntN(len(rooms))]
			n, intended := p.Due(now, most)
			if n > most || n > 0 && intended > now || n == 0 && intended != p.Next() {
				t.Fatalf("at %d: %d of %d permits for %d", now, n, most, intended)
			}
			if n < most && p.Next() <= now {
				t.Fatalf("at %d: %d of %d permits, and more at once, at %d", now, n, most, p.Next())
			}
			if n > 0 {
				calls = append(calls, call{now, intended, n, now < p.CatchUpUntil()})
			}
			now = max(now+1, min(p.Next(), now+second)) + rng.Int64N(lates[rng.IntN(len(lates))])
		}
		checkDebt(t, c, calls)
		checkWindows(t, c, calls)
		want := uint64(p.end)
		if p.Offered() != want || sum(calls) != p.Granted() {
			t.Fatalf("offered %d of %d, granted %d, handed out %d", p.Offered(), want, p.Granted(), sum(calls))
		}
	})
}

func sum(calls []call) (n uint64) {
	for _, c := range calls {
		n += uint64(c.n)
	}
	return n
}

// checkDebt: nothing is sent later than the debt allows, give or take the one
// permit that is always kept.
func checkDebt(t *rapid.T, c Config, calls []call) {
	period := int64(1e9 / c.PPS * float64(c.Workers))
	for _, call := range calls {
		if late := call.at - call.intended; late > int64(DefaultMaxDebt)+period+2 {
			t.Fatalf("sent %d ns late: over 1 ms and a period of %d", late, period)
		}
	}
}

// checkWindows: no 100 us outside catch-up hold more than the rule allows, and
// no catch-up lets go more than its own time and 1 ms of debt.
func checkWindows(t *rapid.T, c Config, calls []call) {
	own := c.PPS / float64(c.Workers)
	allowed := int(own*Window.Seconds() + float64(c.burst()) + 1e-6)
	if most := mostInWindow(calls); most > allowed {
		t.Fatalf("%d permits in 100 us at %v pps, want at most %d", most, own, allowed)
	}
	caught := uint64(math.Ceil(own*(CatchUp+DefaultMaxDebt).Seconds())) + 1
	for len(calls) > 0 {
		from := slices.IndexFunc(calls, func(c call) bool { return c.caughtUp })
		if from < 0 {
			return
		}
		calls = calls[from:]
		to := slices.IndexFunc(calls, func(c call) bool { return c.at >= calls[0].at+int64(CatchUp) })
		if to < 0 {
			to = len(calls)
		}
		if n := sum(calls[:to]); n > caught {
			t.Fatalf("%d permits while catching up at %v pps, want at most %d", n, own, caught)
		}
		calls = calls[to:]
	}
}

// Two workers together keep the rule of the whole stream.
func TestTwoWorkersKeepTheRuleTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := math.Pow(10, rapid.Float64Range(3, 6).Draw(t, "log10 of rate"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var calls []call
		for w := range 2 {
			p := New(Config{PPS: rate, Workers: 2, Worker: w, Count: 600})
			i := 0
			calls = append(calls, drive(p, math.MaxInt64, 1<<20, func(now, next int64) int64 {
				i++
				if i%10 == 0 {
					return next + rng.Int64N(60_000)
				}
				return prompt(now, next)
			})...)
		}
		if n := sum(calls); n != 600 {
			t.Fatalf("%d permits, want 600", n)
		}
		slices.SortFunc(calls, func(a, b call) int { return int(a.at - b.at) })
		if most, allowed := mostInWindow(calls), int(rate*1e-4+2+1e-6); most > allowed {
			t.Fatalf("%d permits of two workers in 100 us at %v pps, want at most %d", most, rate, allowed)
		}
	})
}

func TestCountIsExactOverWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			PPS:     rapid.SampledFrom([]float64{0, 1e3, 1e6}).Draw(t, "rate"),
			Count:   rapid.Uint64Range(1, 3000).Draw(t, "count"),
			Workers: rapid.IntRange(1, 16).Draw(t, "workers"),
		}
		stall := rapid.Int64Range(0, 10_000_000).Draw(t, "stall")
		var total, least, most uint64 = 0, math.MaxUint64, 0
		for c.Worker = range c.Workers {
			p := New(c)
			i := 0
			drive(p, math.MaxInt64, 32, func(now, next int64) int64 {
				if i++; i%50 == 0 {
					return max(now, next) + stall
				}
				return prompt(now, next)
			})
			if !p.Done() {
				t.Fatal("a worker never ended")
			}
			total += p.Granted()
			least, most = min(least, p.Granted()), max(most, p.Granted())
		}
		if total != c.Count || most-least > 1 {
			t.Fatalf("granted %d, %d to %d per worker; want %d in even shares", total, least, most, c.Count)
		}
	})
}

// The window agrees with a list of every permit and its time, also when it has
// more grants than places: then it may only hold back more.
func TestWindowAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int64{1, 2, 12, 5000}).Draw(t, "limit")
		w := newWindow(limit)
		var sent []int64
		steps := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 30_000),
			rapid.SampledFrom([]int64{25_000, 50_000, 100_000})), 1, 200).Draw(t, "steps")
		if rapid.Bool().Draw(t, "dense") {
			steps = slices.Repeat([]int64{0, 20}, 3000) // 6000 grants in 60 us
			steps = append(steps, 39_990, 5, 5, 5, 25_000, 100_000)
		}
		now, exact := int64(0), true
		for _, step := range steps {
			now += step
			held := int64(0)
			for i := len(sent) - 1; i >= 0 && sent[i] > now-int64(Window); i-- {
				held++
			}
			exact = exact && len(sent) < maxGrants
			room := w.room(now)
			if room > limit-held || (exact || held == 0) && room != limit-held || room < 0 {
				t.Fatalf("room %d at %d, want %d - %d", room, now, limit, held)
			}
			if room == 0 {
				if f := w.frees(); f <= now || f > now+int64(Window) {
					t.Fatalf("full at %d, frees at %d", now, f)
				}
				continue
			}
			w.add(now, 1)
			sent = append(sent, now)
		}
	})
}
