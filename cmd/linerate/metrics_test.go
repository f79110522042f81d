package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"linerate/internal/lab/veth"
	"linerate/internal/nettest"
	"linerate/internal/report"
)

// screen is a buffer that can be read while it is written.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// background is a command line that runs until stop is called.
type background struct {
	stdout, stderr screen
	cancel         context.CancelFunc
	code           chan int
}

func startScraped(t *testing.T, args ...string) *background {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	b := &background{cancel: cancel, code: make(chan int, 1)}
	go func() { b.code <- run(ctx, &b.stdout, &b.stderr, args) }()
	t.Cleanup(func() { b.stop() })
	return b
}

// stop ends the command as Ctrl-C does.
func (b *background) stop() int {
	b.cancel()
	code := <-b.code
	b.code <- code
	return code
}

// metricsURL waits until the command says where its metrics are.
func (b *background) metricsURL(t *testing.T) string {
	t.Helper()
	said := regexp.MustCompile(`(?m)^metrics: (http://\S+)$`)
	var at string
	eventually(t, "the address of the metrics", func() bool {
		m := said.FindStringSubmatch(b.stderr.String())
		if m == nil {
			return false
		}
		at = m[1]
		return true
	}, func() string { return b.stderr.String() })
	return at
}

// eventually polls for half a minute.
func eventually(t *testing.T, what string, is func() bool, or func() string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s\n%s", what, or())
		}
	}
}

// get reads a URL and keeps no connection.
func get(t *testing.T, at string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// scrape reads the metrics as Prometheus' own parser understands them.
func scrape(t *testing.T, at string) map[string]*dto.MetricFamily {
	t.Helper()
	body, err := get(t, at)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return families
}

// value is that of the only counter of a family, and the endpoint it is of.
func value(t *testing.T, f map[string]*dto.MetricFamily, name string) (v float64, endpoint string) {
	t.Helper()
	m := f[name].GetMetric()
	if len(m) != 1 || len(m[0].GetLabel()) != 1 || f[name].GetType() != dto.MetricType_COUNTER {
		t.Fatalf("%s is %v", name, f[name])
	}
	return m[0].GetCounter().GetValue(), m[0].GetLabel()[0].GetValue()
}

// elapsed is how far into the run the counters were read, seconds.
func elapsed(f map[string]*dto.MetricFamily) float64 {
	return f["linerate_elapsed_seconds"].GetMetric()[0].GetGauge().GetValue()
}

// A run that is scraped shows what its interval lines say, and ends with its
// server.
func TestMetricsOfARun(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	lab := nettest.Lab(t, veth.Config{})
	b := startScraped(t, "run", "--tx", lab.A(), "--rx", lab.B(), "--rate", "5kpps", "-t", "50s", "--interval", "200ms", "--ndjson", "--metrics", ":0")
	at := b.metricsURL(t)
	if !strings.HasPrefix(at, "http://127.0.0.1:") || strings.Contains(b.stderr.String(), "warning: --metrics") {
		t.Errorf("stderr: %s", b.stderr.String())
	}
	var f map[string]*dto.MetricFamily
	eventually(t, "frames of several intervals", func() bool {
		f = scrape(t, at)
		n, _ := value(t, f, "linerate_rx_frames_total")
		return n > 0 && elapsed(f) > 0.7
	}, b.stderr.String)
	if code := b.stop(); code != exitInterrupted {
		t.Errorf("exit %d: %s", code, b.stderr.String())
	}
	if _, err := get(t, at); err == nil {
		t.Error("the server outlives the run")
	}
	end := elapsed(f)
	var offered, sent, received uint64
	seen := false
	for line := range strings.Lines(b.stdout.String()) {
		var i report.Interval
		if err := json.Unmarshal([]byte(line), &i); err != nil {
			t.Fatal(err)
		}
		if i.Schema != report.IntervalSchema || float64(i.EndNs)/1e9 > end {
			break
		}
		offered, sent, received = offered+*i.Tx.Offered, sent+*i.Tx.Sent, received+*i.Rx.Received
		seen = seen || float64(i.EndNs)/1e9 == end
	}
	if !seen {
		t.Errorf("no interval ends at %v s", end)
	}
	for _, c := range []struct {
		name, endpoint string
		want           uint64
	}{
		{"linerate_tx_offered_frames_total", lab.A(), offered}, {"linerate_tx_frames_total", lab.A(), sent},
		{"linerate_tx_bytes_total", lab.A(), 64 * sent}, {"linerate_tx_l1_bytes_total", lab.A(), 84 * sent},
		{"linerate_rx_frames_total", lab.B(), received}, {"linerate_rx_bytes_total", lab.B(), 64 * received},
	} {
		if got, of := value(t, f, c.name); got != float64(c.want) || of != c.endpoint {
			t.Errorf("%s of %s is %v, the intervals of %s say %d", c.name, of, got, c.endpoint, c.want)
		}
	}
}

// An address that is taken is told before anything is sent; one that others
// reach is warned of.
func TestMetricsAddresses(t *testing.T) {
	for _, bad := range []string{"9100", ":http", "127.0.0.1:65536"} {
		if code, _, stderr := invoke(t, "demo", "--metrics", bad); code != exitUsage || !strings.Contains(stderr, "--metrics :9100") {
			t.Errorf("%s: exit %d: %s", bad, code, stderr)
		}
	}
	nettest.Require(t, nettest.Root, nettest.AFXDP)
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	code, stdout, stderr := invoke(t, "demo", "-n", "1000", "--json", "--metrics", address)
	if code != exitCannotRun || !strings.Contains(stdout, "address already in use") || !strings.Contains(stdout, address) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	code, _, stderr = invoke(t, "demo", "-n", "1000", "--rate", "5kpps", "--metrics", "0.0.0.0:0")
	if code != exitPassed || !strings.Contains(stderr, "warning: --metrics 0.0.0.0:0") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	lab := nettest.Lab(t, veth.Config{})
	for _, args := range [][]string{{"blast", lab.A(), "-n", "1000", "--rate", "5kpps", "--max-rate-error", "100"}, {"sink", lab.B(), "-t", "300ms"}} {
		_, _, stderr := invoke(t, append(args, "--metrics", ":0")...)
		if !strings.Contains(stderr, "metrics: http://127.0.0.1:") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
}

// prometheus starts a real Prometheus that scrapes one target every second and
// returns the URL of its API.
func prometheus(t *testing.T, target string) string {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := "scrape_configs:\n- job_name: linerate\n  scrape_interval: 1s\n  static_configs:\n  - targets: ['" + target + "']\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	l.Close()
	runtime.LockOSThread() // it dies with this thread
	t.Cleanup(runtime.UnlockOSThread)
	var log screen
	cmd := exec.Command("prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+listen)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("prometheus: %v\n%s", err, log.String())
		}
	})
	return "http://" + listen
}

// A real Prometheus scrapes a run and answers a query about it.
func TestPrometheusReadsARun(t *testing.T) {
	nettest.Require(t, nettest.Root, nettest.AFXDP, nettest.Prometheus)
	lab := nettest.Lab(t, veth.Config{})
	b := startScraped(t, "run", "--tx", lab.A(), "--rx", lab.B(), "--rate", "5kpps", "-t", "50s", "--interval", "200ms", "--metrics", "127.0.0.1:0")
	u, err := url.Parse(b.metricsURL(t))
	if err != nil {
		t.Fatal(err)
	}
	api := prometheus(t, u.Host)
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	var body []byte
	eventually(t, "an answer", func() bool {
		body, err = get(t, api+"/api/v1/query?query="+url.QueryEscape("linerate_rx_frames_total > 0"))
		return err == nil && json.Unmarshal(body, &answer) == nil && len(answer.Data.Result) > 0
	}, func() string { return fmt.Sprintf("%v\n%s", err, body) })
	r := answer.Data.Result
	if len(r) != 1 || r[0].Metric["endpoint"] != lab.B() || r[0].Metric["job"] != "linerate" {
		t.Errorf("%s", body)
	}
	body, err = get(t, api+"/api/v1/metadata?metric=linerate_rx_frames")
	if err != nil || !strings.Contains(string(body), `"type":"counter"`) {
		t.Errorf("not known as a counter: %s, %v", body, err)
	}
}
