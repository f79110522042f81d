package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of the server: it has one reader, or a few.
const (
	headerWait = 5 * time.Second
	idleWait   = time.Minute
	closeWait  = time.Second
	inFlight   = 4
)

// Address completes HOST:PORT: without a host it is the loopback's. It fails on
// what is no address.
func Address(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", errors.New("no HOST:PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("no port %q", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// Server answers GET /metrics until it is closed.
type Server struct {
	listener net.Listener
	server   *http.Server
	done     chan error
}

// Serve listens on an address that Address completed and shows c there. It
// fails if the address cannot be had. The caller closes the server.
func Serve(ctx context.Context, address string, c *Collector) (*Server, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(c); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err // the address is in the text already
		}
		return nil, fmt.Errorf("serve metrics on %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, MaxRequestsInFlight: inFlight,
	}))
	s := &Server{listener: l, done: make(chan error, 1), server: &http.Server{
		Handler: mux, ReadHeaderTimeout: headerWait, ReadTimeout: headerWait, WriteTimeout: headerWait, IdleTimeout: idleWait,
		MaxHeaderBytes: 1 << 14, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}}
	go func() { s.done <- s.server.Serve(l) }()
	return s, nil
}

// URL is where the metrics are.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Loopback says whether only this host can read them.
func (s *Server) Loopback() bool {
	a, ok := s.listener.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// Close ends the server: a scrape under way has a second to finish.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close()
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
