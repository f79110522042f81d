package trial

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// userHZ is the unit of /proc/stat, the same on every Linux (USER_HZ).
const userHZ = 100

// cpuTimes is the idle time of each core since boot.
type cpuTimes struct {
	at   time.Time
	idle []time.Duration
}

// readCPU reads /proc/stat; where it cannot, the cost is unknown.
func readCPU() cpuTimes {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cpuTimes{}
	}
	return cpuTimes{at: time.Now(), idle: parseIdle(string(data))}
}

// parseIdle takes idle + iowait of every cpuN line.
func parseIdle(stat string) []time.Duration {
	var out []time.Duration
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		idle, err1 := strconv.ParseUint(f[4], 10, 63)
		iowait, err2 := strconv.ParseUint(f[5], 10, 63)
		if err1 != nil || err2 != nil {
			return nil
		}
		out = append(out, time.Duration(idle+iowait)*time.Second/userHZ)
	}
	return out
}

// busySince is elapsed - idle summed over the cores, in seconds; idle is
// exact where the tick stops on idle (NO_HZ), unlike the user/system split.
func (c cpuTimes) busySince(b cpuTimes) *float64 {
	if len(c.idle) == 0 || len(c.idle) != len(b.idle) {
		return nil
	}
	wall := c.at.Sub(b.at)
	var busy time.Duration
	for i := range c.idle {
		busy += max(0, wall-(c.idle[i]-b.idle[i]))
	}
	s := busy.Seconds()
	return &s
}
