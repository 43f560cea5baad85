//go:build bench

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// flood is a server by hand whose tool answers with an event stream: one event of as many bytes as the call asks for.
func flood() error {
	return serveHTTP(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Bytes int } }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
				`"serverInfo":{"name":"flood","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"flood","inputSchema":{"type":"object"},` +
				`"annotations":{"readOnlyHint":true}}]}`
		case "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			writeEvent(w, m.ID, m.Params.Arguments.Bytes)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if m.Method == "server/discover" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
}

// writeEvent writes one event whose result has a text of n bytes.
func writeEvent(w io.Writer, id json.RawMessage, n int) {
	fmt.Fprintf(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for n > 0 {
		k := min(n, len(piece))
		if _, err := w.Write(piece[:k]); err != nil {
			return
		}
		n -= k
	}
	io.WriteString(w, "\"}]}}\n\n")
}

// TestAnswersInFlight holds what six answers of 400 MB at once cost the process, with a budget of 128 MiB: above what it
// has before them, and five seconds later. Then answers that are not refused pass through the same budget whole.
func TestAnswersInFlight(t *testing.T) {
	p, url := floodGateway(t, 128<<20)
	call := func(c client, n int, want string) error {
		_, err := c.call(toolCall("up__flood", fmt.Sprintf(`{"bytes":%d}`, n), want))
		return err
	}
	clients := make([]client, 6)
	for i := range clients {
		clients[i] = connect(t, url)
	}
	mounted(t, clients[0], toolCall("up__flood", `{"bytes":10}`, strings.Repeat("x", 10)))
	idle := residentMB(t, p)
	stop := make(chan struct{})
	peak := make(chan float64)
	go func() {
		most := 0.0
		for every := time.NewTicker(2 * time.Millisecond); ; {
			select {
			case <-every.C:
				most = max(most, residentMB(t, p))
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	var work sync.WaitGroup
	for _, c := range clients {
		work.Go(func() {
			if err := call(c, 400<<20, "size bound"); err == nil || !strings.Contains(err.Error(), "over the size bound") {
				t.Errorf("an answer of 400 MiB: %v", err)
			}
		})
	}
	work.Wait()
	close(stop)
	over := <-peak - idle
	<-time.After(5 * time.Second)
	left := residentMB(t, p) - idle
	t.Logf("idle %.0f MB; six answers of 400 MB: %+.0f MB at most, %+.0f MB after five seconds", idle, over, left)
	if over > 192 {
		t.Errorf("six answers of 400 MB took %.0f MB more, want at most 192", over)
	}
	if left > 20 {
		t.Errorf("five seconds later %.0f MB more are resident, want at most 20", left)
	}
	for _, c := range clients {
		work.Go(func() {
			if err := call(c, 16<<20, strings.Repeat("x", 16<<20)); err != nil {
				t.Errorf("an answer of 16 MiB: %.300v", err)
			}
		})
	}
	work.Wait()
}

// floodGateway starts Drawbridge in front of flood, with a budget of so many bytes.
func floodGateway(t *testing.T, budget int) (*benchProcess, string) {
	t.Helper()
	up := start(t, role(t, "flood"))
	config, store := configure(t, server{Name: "up", URL: up.url(t)})
	settings := filepath.Join(filepath.Dir(store), "drawbridge", "drawbridge.toml")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("[mcp]\nanswers_in_flight = %d\n", budget)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, serve(config, store, "--http", "127.0.0.1:0"))
	return p, p.url(t)
}

// residentMB returns the resident memory of a process.
func residentMB(t testing.TB, p *benchProcess) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Error(err)
	}
	return float64(kb) * 1024 / 1e6
}
