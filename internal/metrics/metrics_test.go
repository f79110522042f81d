package metrics

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sys/unix"

	"linerate/internal/meter"
	"linerate/internal/nettest"
	"linerate/internal/trial"
)

func TestMain(m *testing.M) { nettest.Main(m) }

// get scrapes once and keeps no connection.
func get(t *testing.T, url, accept string) (contentType, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return resp.Header.Get("Content-Type"), string(data)
}

func progress(submitted, refused uint64) trial.Progress {
	return trial.Progress{ElapsedNs: 1_500_000_000, HasTx: true, HasRx: true, Total: meter.Interval{
		Tx: meter.TxCounts{Offered: 1000, Submitted: submitted, Refused: refused, Bytes: submitted * 64},
		Rx: meter.RxCounts{Taken: 700, Bytes: 700 * 64},
	}}
}

// Every value by its name, in the text that OpenMetrics asks for.
func TestOpenMetrics(t *testing.T) {
	c := New(Run{ID: "id", Version: "v1", Tx: "a/lr0", Rx: "b/lr\xff0"})
	s, err := Serve(t.Context(), "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const open = "application/openmetrics-text;version=1.0.0"
	_, before := get(t, s.URL(), open)
	c.Observe(progress(800, 50))
	kind, after := get(t, s.URL(), open)
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.HasSuffix(after, "# EOF\n") {
		t.Errorf("%s:\n%s", kind, after)
	}
	for line, text := range map[string]string{
		"# TYPE linerate_tx_frames counter\n":                            after,
		"linerate_run_info{run_id=\"id\",version=\"v1\"} 1.0\n":          after,
		"linerate_elapsed_seconds 1.5\n":                                 after,
		"linerate_tx_offered_frames_total{endpoint=\"a/lr0\"} 1000.0\n":  after,
		"linerate_tx_frames_total{endpoint=\"a/lr0\"} 750.0\n":           after,
		"linerate_tx_refused_frames_total{endpoint=\"a/lr0\"} 50.0\n":    after,
		"linerate_tx_bytes_total{endpoint=\"a/lr0\"} 48000.0\n":          after,
		"linerate_tx_l1_bytes_total{endpoint=\"a/lr0\"} 63000.0\n":       after,
		"linerate_rx_frames_total{endpoint=\"b/lr\uFFFD0\"} 700.0\n":     after,
		"linerate_rx_bytes_total{endpoint=\"b/lr\uFFFD0\"} 44800.0\n":    after,
		"linerate_rx_l1_bytes_total{endpoint=\"b/lr\uFFFD0\"} 58800.0\n": after,
		"linerate_rx_frames_total{endpoint=\"b/lr\uFFFD0\"} 0.0\n":       before,
		"linerate_tx_refused_frames_total{endpoint=\"a/lr0\"} 0.0\n":     before,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// The linter of the Prometheus project has nothing to say about the names.
func TestNames(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(New(Run{ID: "id", Tx: "a", Rx: "b"}))
	problems, err := testutil.GatherAndLint(r)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n, gerr := testutil.GatherAndCount(r); err != nil || gerr != nil || n != 10 {
		t.Errorf("%d series, want 10: %v, %v", n, err, gerr)
	}
	r = prometheus.NewPedanticRegistry()
	r.MustRegister(New(Run{ID: "id", Rx: "b"}))
	if n, err := testutil.GatherAndCount(r); err != nil || n != 5 {
		t.Errorf("a receiver alone has %d series, want 5: %v", n, err)
	}
}

// Frames refused after they were counted as sent do not turn a counter back.
func TestCountersNeverFall(t *testing.T) {
	c := New(Run{Tx: "a"})
	c.Observe(progress(800, 0))
	c.Observe(progress(800, 100))
	if l := c.last.Load(); l.sent != 800 || l.sentBytes != 800*64 || l.sentPhysicalBytes != 800*84 || l.refused != 100 {
		t.Errorf("%+v", *l)
	}
	c.Observe(progress(1000, 100))
	if l := c.last.Load(); l.sent != 900 || l.sentBytes != 900*64 {
		t.Errorf("%+v", *l)
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		":9100": "127.0.0.1:9100", "0.0.0.0:9100": "0.0.0.0:9100", "[::1]:0": "[::1]:0", "localhost:1": "localhost:1",
		"": "", "9100": "", "127.0.0.1": "", "a:b": "", ":65536": "", "::1:9100": "", ":": "",
	} {
		if got, err := Address(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}

// Close gives the address back, whatever a client holds open.
func TestCloseLeavesNothing(t *testing.T) {
	c := New(Run{Tx: "a"})
	s, err := Serve(t.Context(), "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	address := s.listener.Addr().String()
	idle, err := net.Dial("tcp", address) //nolint:noctx // it must stay
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := Serve(context.Background(), address, c); !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), address) {
		t.Errorf("a second server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, err := Serve(t.Context(), address, c)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Loopback() {
		t.Error("127.0.0.1 is no loopback")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	wide, err := Serve(t.Context(), "0.0.0.0:0", c)
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close()
	if wide.Loopback() {
		t.Error("0.0.0.0 is the loopback")
	}
}
