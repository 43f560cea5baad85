//go:build bench

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// insides is what the embedded gateway tells of itself.
type insides struct {
	Garbage    uint64        // bytes allocated since its start
	Goroutines int           // now
	List       time.Duration // what the last request took in the handler
}

// embedded is a process with nothing but the gateway in it. It prints its URL, then answers each line on standard input
// with its insides; it ends when that does.
func embedded(config, store string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g, err := gateway.Open(ctx, gateway.Config{Paths: []string{config}, Store: store})
	if err != nil {
		return err
	}
	defer g.Close()
	var last stopwatch
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	door := &http.Server{Handler: last.around(g.Server().Handler())}
	var running sync.WaitGroup
	running.Go(func() { g.Run(ctx) })
	running.Go(func() { door.Serve(listener) })
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		text, err := json.Marshal(insides{m.TotalAlloc, runtime.NumGoroutine(), last.took()})
		if err != nil {
			return err
		}
		fmt.Printf("%s\n", text)
	}
	door.Close()
	cancel()
	running.Wait()
	return nil
}

// stopwatch keeps how long the last request took in a handler.
type stopwatch struct {
	mu   sync.Mutex
	last time.Duration
}

func (s *stopwatch) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h.ServeHTTP(w, r)
		took := time.Since(began)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = took
	})
}

func (s *stopwatch) took() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// insides asks an embedded gateway.
func (p *benchProcess) insides(t testing.TB) insides {
	t.Helper()
	if _, err := p.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	text, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var i insides
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&i); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return i
}
